"""Every job of configs/examples, as a user runs it."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import RunCommand

EXAMPLES = harness.ROOT / "configs/examples"
JOBS = sorted(file.parent for file in EXAMPLES.glob("*/job.json"))
BATCHES = 29  # of 64 images, the last one of 5


def run_python(*arguments: str | Path, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    """Runs a script of an example, on one thread and without leaving bytecode beside it."""
    return subprocess.run(
        [harness.MPRUN_PYTHON, *map(str, arguments)],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def evaluate_without_mprun() -> list[dict[str, Any]]:
    """The values of all tasks of the digits job, from its functions called in one process."""
    script = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); import evaluate; evaluate.setup();"
        "print(json.dumps([evaluate.evaluate(start) for start in range(0, 1797, 64)]))"
    )
    done = run_python("-c", script, EXAMPLES / "digits")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def held_out_accuracy(values: list[dict[str, Any]]) -> float:
    """Of the values of the digits job."""
    right = sum(value["held_out_correct"] for value in values)
    return right / sum(value["held_out"] for value in values)


def copy_with_images(name: str, folder: Path) -> Path:
    """A copy of an example with the images that its make_images.py draws: they are in no repository."""
    copy = folder / name
    shutil.copytree(EXAMPLES / name, copy, ignore=shutil.ignore_patterns("images.npy", "runs"))
    made = run_python(copy / "make_images.py")
    assert made.returncode == 0, made.stderr
    return copy


def test_every_example_is_complete() -> None:
    for folder in EXAMPLES.iterdir():
        assert (folder / "README.md").is_file(), folder
    assert len(JOBS) >= 5
    for folder in JOBS:
        spec = json.loads((folder / "job.json").read_text())
        assert spec["version"] == 1
        if "script" in spec:
            assert (folder / spec["script"]).is_file()


@pytest.mark.parametrize("name", [folder.name for folder in JOBS])
def test_check_accepts_the_example(run_mprun: RunCommand, name: str, tmp_path: Path) -> None:
    folder = copy_with_images(name, tmp_path) if name == "cnn" else EXAMPLES / name
    run_mprun("check", folder / "job.json").check()


def test_digits_with_every_start_method(run_job: RunCommand) -> None:
    runs = []
    for method in harness.START_METHODS:
        runs.append(
            run_job(EXAMPLES / "digits/job.json", "-n", "2", "--start-method", method).check()
        )
        results = runs[-1].results()
        assert [result["task"] for result in results] == list(range(BATCHES))
        assert {result["status"] for result in results} == {"ok"}
        assert {result["worker"] for result in results} <= {0, 1}

    values = runs[0].values()
    assert runs[1].values() == values  # predictions and digests of all logits
    assert runs[2].values() == values

    assert [value["start"] for value in values] == list(range(0, 1797, 64))
    assert sum(len(value["predictions"]) for value in values) == 1797
    assert held_out_accuracy(values) >= 0.97

    summed = run_python(EXAMPLES / "digits/summarize.py", *(run.run_dir for run in runs))
    assert summed.returncode == 0, summed.stderr
    for method in harness.START_METHODS:
        assert re.search(
            rf"^{method} +1,797 images in .* images/s, accuracy 99\.\d+%",
            summed.stdout,
            re.MULTILINE,
        )
    assert "3 runs agree in all 29 results" in summed.stdout


def test_digits_without_mprun_gives_the_same(run_job: RunCommand) -> None:
    run = run_job(EXAMPLES / "digits/job.json").check()
    assert evaluate_without_mprun() == run.values()


def test_digits_as_tensors(run_job: RunCommand, tmp_path: Path) -> None:
    """The gathered file is, bit for bit, what one process saves, with every start method."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import evaluate, numpy; evaluate.setup();"
        "images = evaluate._images; starts = range(0, 1797, 64);"
        "batches = [evaluate.logits(images[start:start + 64]).numpy() for start in starts];"
        "numpy.save(sys.argv[2], numpy.concatenate(batches))"
    )
    saved = run_python("-c", script, EXAMPLES / "digits", tmp_path / "logits.npy")
    assert saved.returncode == 0, saved.stderr
    wanted = (tmp_path / "logits.npy").read_bytes()[-1797 * 10 * 4 :]
    for method in harness.START_METHODS:
        run = run_job(EXAMPLES / "digits/logits.json", "--start-method", method).check()
        assert (run.run_dir / "tensors/result.npy").read_bytes()[-len(wanted) :] == wanted
        [entry] = run.summary()["tensors"]
        assert (entry["dtype"], entry["shape"], entry["rows_missing"]) == ("<f4", [1797, 10], 0)


def test_cnn(run_job: RunCommand, tmp_path: Path) -> None:
    """As one process has it, bit for bit; the example's own comparison sees a single bit."""
    folder = copy_with_images("cnn", tmp_path)
    drawn = hashlib.sha256((folder / "images.npy").read_bytes()).hexdigest()
    assert drawn == "73dec4ea804cfe4d8d87690b5251147ab2bbc9916160563eeddb54f6a559ded2"
    files = []
    for method in harness.START_METHODS:
        run = run_job(folder / "job.json", "--start-method", method, timeout=300).check()
        [entry] = run.summary()["tensors"]
        assert (entry["dtype"], entry["shape"], entry["rows_missing"]) == ("<f4", [128, 10], 0)
        files.append(run.run_dir / "tensors/logits.npy")
    raw = bytearray(files[0].read_bytes())
    assert all(file.read_bytes() == raw for file in files)
    rows = [bytes(raw[len(raw) - 40 * row : len(raw) - 40 * row + 40]) for row in range(1, 129)]
    assert len(set(rows)) == 128  # of 128 images
    compared = run_python(folder / "evaluate.py", files[0], timeout=300)
    assert compared.returncode == 0, compared.stdout + compared.stderr
    raw[-1] ^= 1
    files[0].write_bytes(raw)
    assert run_python(folder / "evaluate.py", files[0], timeout=300).returncode == 1


def test_training_reaches_the_accuracy_of_the_committed_weights(tmp_path: Path) -> None:
    trained = run_python(EXAMPLES / "digits/train.py", "--output", tmp_path / "weights.npz")
    assert trained.returncode == 0, trained.stderr
    accuracy = float(trained.stdout.split()[-1])
    committed = held_out_accuracy(evaluate_without_mprun())
    assert accuracy >= 0.97
    assert accuracy == pytest.approx(committed, abs=0.01)  # other processors round differently
    assert (tmp_path / "weights.npz").stat().st_size < 200_000


def test_digits_data_is_that_of_scikit_learn() -> None:
    script = (
        "import numpy, sklearn.datasets, sys; digits = sklearn.datasets.load_digits();"
        "images = numpy.load(sys.argv[1] + '/images.npy');"
        "labels = numpy.load(sys.argv[1] + '/labels.npy');"
        "assert images.dtype == labels.dtype == numpy.uint8;"
        "assert (images == digits.images).all() and (labels == digits.target).all()"
    )
    compared = run_python("-c", script, EXAMPLES / "digits")
    assert compared.returncode == 0, compared.stderr


def test_grid(run_job: RunCommand) -> None:
    run = run_job(EXAMPLES / "grid/job.json").check()
    values = run.values()
    points = itertools.product(
        [0.001, 0.01, 0.1], [16, 64], [0, 0.001]
    )  # the last axis varies fastest
    assert [
        (value["learning_rate"], value["width"], value["weight_decay"]) for value in values
    ] == list(points)
    best = max(value["accuracy"] for value in values)
    assert best >= 0.95
    table = run_python(EXAMPLES / "grid/best.py", run.run_dir).stdout.splitlines()
    assert len(table) == 1 + len(values)
    assert float(table[1].split()[0]) == best


def test_grid_is_the_same_under_every_start_method(run_job: RunCommand) -> None:
    runs = [
        run_job(EXAMPLES / "grid/job.json", "--start-method", method).check()
        for method in harness.START_METHODS
    ]
    assert runs[0].values() == runs[1].values() == runs[2].values()


def test_files(run_job: RunCommand, start_method: str) -> None:
    values = run_job(EXAMPLES / "files/job.json", "--start-method", start_method).check().values()
    assert [value["file"] for value in values] == sorted(
        path.name for path in (EXAMPLES / "files/texts").iterdir()
    )
    whale = values[0]
    assert whale["words"] == 145
    assert whale["longest"] == "involuntarily"
    assert whale["most_frequent"] == ["i", "the", "and"]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ddp(run_job: RunCommand, ranks: int) -> None:
    run = run_job(EXAMPLES / "ddp/job.json", "-n", str(ranks)).check()
    values = run.values()
    assert [value["rank"] for value in values] == list(range(ranks))
    assert {value["world_size"] for value in values} == {ranks}
    assert len({value["parameters_sha256"] for value in values}) == 1
    for value in values:
        assert value["last_loss"] < value["first_loss"]
        rank = value["rank"]
        assert f"rank {rank} of {ranks}: loss" in run.log(rank)


def test_ddp_with_every_start_method(run_job: RunCommand, start_method: str) -> None:
    values = run_job(EXAMPLES / "ddp/job.json", "--start-method", start_method).check().values()
    assert len(values) == 2
    assert values[0]["parameters_sha256"] == values[1]["parameters_sha256"]


def test_ddp_script_runs_without_mprun(tmp_path: Path) -> None:
    """As torchrun would start it; with a file instead of a port, so that no concurrent test can use the same one."""
    script = (
        "import runpy, sys, torch.distributed as dist; start = dist.init_process_group;"
        "dist.init_process_group = lambda backend: start("
        f"    backend, init_method='file://{tmp_path}/meeting', rank=0, world_size=1);"
        f"runpy.run_path({str(EXAMPLES / 'ddp/train_ddp.py')!r}, run_name='__main__')"
    )
    done = run_python("-c", script)
    assert done.returncode == 0, done.stderr
    assert "rank 0 of 1: loss" in done.stdout


def shared_classifier_accuracy(run_dir: Path) -> float:
    """Of the parameters that a run of the shared example saved, on the images it held out."""
    script = (
        "import numpy, sys; digits, shared = sys.argv[1:];"
        "images = numpy.load(digits + '/images.npy').reshape(-1, 64)[::6] / 16.0;"
        "labels = numpy.load(digits + '/labels.npy')[::6];"
        "weight, bias = numpy.load(shared + '/weight.npy'), numpy.load(shared + '/bias.npy');"
        "print(((images @ weight.T + bias).argmax(1) == labels).mean())"
    )
    done = run_python("-c", script, EXAMPLES / "digits", run_dir / "shared")
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def test_shared_model_of_all_ranks(run_job: RunCommand, start_method: str) -> None:
    """The saved model is the one that all ranks have trained: better than what each started with."""
    run = run_job(
        EXAMPLES / "shared/job.json", "-n", "2", "--start-method", start_method, timeout=120
    ).check()
    assert [value["rank"] for value in run.values()] == [0, 1]
    assert shared_classifier_accuracy(run.run_dir) > 0.9


def test_shared_rows_are_the_same_under_every_start_method(run_job: RunCommand) -> None:
    runs = [
        run_job(EXAMPLES / "shared/folds.json", "-n", workers, "--start-method", method).check()
        for method, workers in zip(harness.START_METHODS, "213")
    ]
    assert runs[0].values() == runs[1].values() == runs[2].values()
    assert all(value["accuracy"] > 0.9 for value in runs[0].values())
    for name in ("weights.npy", "biases.npy"):
        files = {(run.run_dir / "shared" / name).read_bytes() for run in runs}
        assert len(files) == 1
        assert set(files.pop()[128:]) != {0}  # what follows the header


def test_lines(run_job: RunCommand) -> None:
    run = run_job(EXAMPLES / "lines/job.json").check()
    names = (EXAMPLES / "lines/names.txt").read_text().splitlines()
    digests = [hashlib.sha256((EXAMPLES / name).read_bytes()).hexdigest() for name in names]
    assert run.values() == [
        {"exit_code": 0, "stdout": f"{digest}  {name}\n", "stderr": ""}
        for digest, name in zip(digests, names)
    ]
    assert [row["Exitval"] for row in run.joblog()] == ["0"] * len(names)


def test_results_on_standard_output(run_job: RunCommand) -> None:
    run = run_job(EXAMPLES / "files/job.json", "--results", "-").check()
    assert [json.loads(line) for line in run.stdout.splitlines()] == run.results()


def test_hang(run_job: RunCommand, run_mprun: RunCommand) -> None:
    """One task hangs and is named; with the cure of the report the job is finished."""
    run = run_job(EXAMPLES / "hang/job.json").check(1)
    (failed,) = [result for result in run.results() if result["status"] != "ok"]
    assert failed["task"] == 17 and failed["error"]["type"] == "Hung"
    assert "cure:  get all results before you join" in run.stderr
    run_mprun("resume", "--retry-failed", "--set", 'env.GET_FIRST="1"', run.run_dir).check()
    values = [json.loads(line)["value"] for line in (run.run_dir / "results.jsonl").read_text().splitlines()]
    assert len(values) == 60 and all(abs(value - 3.1416) < 0.02 for value in values)
