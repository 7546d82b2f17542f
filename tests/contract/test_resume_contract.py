"""`mprun resume`: a run that was cut short is finished, not repeated, whichever process died."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import Run, RunCommand, StartCommand

JOB = """
import numpy

import events


def square(number):
    events.mark("ran", number)
    if number == 7:
        raise ValueError("seven")
    if number == 20:
        events.wait_for("go", seconds=60)
    return number * number


def rows(number):
    events.mark("ran", number)
    if number == 20:
        events.wait_for("go", seconds=60)
    columns = 5 if number == 25 else 3  # that one does not fit into the file of the others
    return {"small": numpy.full(columns, number, dtype="i4"), "number": number}
"""

SCRIPTS = {"job.py": JOB, "events.py": harness.EVENTS}

KillCommand = Callable[..., Path]


def job(start_method: str, function: str = "square", **more: Any) -> dict[str, Any]:
    """Forty tasks, one of which waits for `go`."""
    return {
        "script": f"job.py:{function}",
        "python": harness.MPRUN_PYTHON,
        "start_method": start_method,
        "processes": 2,
        "chunk_size": 1,
        "inputs": {"range": 40},
        **more,
    }


@pytest.fixture
def kill_mprun(start_job: StartCommand, tmp_path: Path) -> KillCommand:
    """kill_mprun(spec) -> the run directory of a job whose supervisor was killed at the twentieth task."""

    def kill(spec: dict[str, Any], *options: str) -> Path:
        running = start_job(spec, *options, scripts=SCRIPTS)
        harness.wait_until(lambda: "20" in harness.marks(tmp_path / "ran"), what="task 20")
        results = running.run_dir / "results.jsonl"
        harness.wait_until(lambda: len(results.read_bytes().splitlines()) > 25, what="results")
        supervisor = next(child for child in running.children() if child.ppid == running.pid)
        os.kill(supervisor.pid, signal.SIGKILL)
        assert running.wait().returncode == 125
        (tmp_path / "go").write_text("go\n", encoding="utf-8")
        return running.run_dir

    return kill


def stable(run_dir: Path) -> list[dict[str, Any]]:
    """The results without what differs from run to run."""
    keys = ("task", "status", "value", "error", "tensors")
    lines = (run_dir / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return [{key: line[key] for key in keys if key in line} for line in map(json.loads, lines)]


def test_a_killed_run_is_finished(
    start_method: str, kill_mprun: KillCommand, run_mprun: RunCommand, run_job: RunCommand, tmp_path: Path
) -> None:
    """After kill -9 of mprun no ended task runs again, and the outcome is as if nothing had happened."""
    run_dir = kill_mprun(job(start_method))
    ended = {str(json.loads(line)["task"]) for line in (run_dir / "results.jsonl").open()}
    (tmp_path / "ran").unlink()
    resumed = run_mprun("resume", run_dir).check(1)
    assert f", {len(ended)} of them earlier, in " in resumed.stderr
    again = harness.marks(tmp_path / "ran")
    assert len(again) == len(set(again)) and not ended & set(again)
    assert ended | set(again) == {str(number) for number in range(40)}
    undisturbed = run_job(job(start_method), scripts=SCRIPTS).check(1)
    assert stable(run_dir) == stable(undisturbed.run_dir)
    summary = json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))
    assert summary["counts"] == undisturbed.summary()["counts"]
    assert summary["exit_code"] == 1 and summary["sessions"] == 2
    joblog = (run_dir / "joblog.tsv").read_text(encoding="utf-8").splitlines()
    assert {int(line.split("\t")[0]) for line in joblog[1:]} == set(range(1, 41))


def test_gathered_tensors_are_finished(
    start_method: str, kill_mprun: KillCommand, run_mprun: RunCommand, run_job: RunCommand
) -> None:
    """Rows of both sessions end up in one file, byte for byte that of an undisturbed run."""
    run_dir = kill_mprun(job(start_method, "rows"))
    run_mprun("resume", run_dir).check()
    undisturbed = run_job(job(start_method, "rows"), scripts=SCRIPTS).check()
    assert stable(run_dir) == stable(undisturbed.run_dir)
    files = sorted(file.name for file in (undisturbed.run_dir / "tensors").iterdir())
    assert files == sorted(file.name for file in (run_dir / "tensors").iterdir())
    for name in files:
        theirs = (undisturbed.run_dir / "tensors" / name).read_bytes()
        assert (run_dir / "tensors" / name).read_bytes() == theirs, name


def test_tensors_that_a_power_cut_may_have_taken(
    kill_mprun: KillCommand, run_mprun: RunCommand, run_job: RunCommand, tmp_path: Path
) -> None:
    """After a reboot only tensors known to be on disk count, and all values without tensors."""
    run_dir = kill_mprun(job("fork", "rows"))
    lines = (run_dir / "results.jsonl").read_bytes().splitlines(keepends=True)
    certain = sum(map(len, lines[:10]))
    journal = (run_dir / "journal.jsonl").read_text(encoding="utf-8")
    boot = json.loads(journal.splitlines()[0])["boot"]
    assert boot == Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    kept = [line for line in journal.splitlines() if '"certain"' not in line]
    text = "\n".join([*kept, json.dumps({"certain": certain})]) + "\n"
    (run_dir / "journal.jsonl").write_text(text.replace(boot, "another"), encoding="utf-8")
    (tmp_path / "ran").unlink()
    run_mprun("resume", run_dir).check()
    doubtful = {str(json.loads(line)["task"]) for line in lines[10:] if b'"tensors":[' in line}
    sure = {str(json.loads(line)["task"]) for line in lines} - doubtful
    again = set(harness.marks(tmp_path / "ran"))
    assert len(doubtful) > 5 and doubtful <= again and not sure & again
    undisturbed = run_job(job("fork", "rows"), scripts=SCRIPTS).check()
    assert stable(run_dir) == stable(undisturbed.run_dir)
    gathered = Path("tensors") / "small.npy"
    assert (run_dir / gathered).read_bytes() == (undisturbed.run_dir / gathered).read_bytes()


def test_what_is_certain_is_written_down(run_job: RunCommand) -> None:
    """In jobs with tensors, once they are on disk."""
    run_dir = run_job({**job("fork", "rows"), "durability": "each"}, scripts={**SCRIPTS, "go": "go\n"}).check().run_dir
    lines = map(json.loads, (run_dir / "journal.jsonl").read_text(encoding="utf-8").splitlines())
    offsets = [line["certain"] for line in lines if "certain" in line]
    assert offsets == sorted(offsets) and len(offsets) > 30
    assert offsets[-1] == (run_dir / "results.jsonl").stat().st_size


def test_failed_tasks_are_tried_again_when_asked(
    kill_mprun: KillCommand, run_mprun: RunCommand, tmp_path: Path
) -> None:
    """--retry-failed drops the failure and runs the task; without it nothing is left to do."""
    run_dir = kill_mprun(job("fork"))
    run_mprun("resume", run_dir).check(1)
    (tmp_path / "ran").unlink()
    run_mprun("resume", run_dir).check(1)
    assert not (tmp_path / "ran").exists()
    script = tmp_path / "job.py"
    script.write_text(script.read_text(encoding="utf-8").replace("== 7", "== -7"), encoding="utf-8")
    resumed = run_mprun("resume", "--retry-failed", "--accept-changes", run_dir).check()
    assert "40 ok, 39 of them earlier, in " in resumed.stderr
    assert harness.marks(tmp_path / "ran") == ["7"]
    assert [line["value"] for line in stable(run_dir)] == [number**2 for number in range(40)]


@pytest.mark.parametrize("name", ["results.jsonl", "journal.jsonl", "job.json", "joblog.tsv"])
def test_a_copy_of_the_results_empties_no_file_of_the_run(
    kill_mprun: KillCommand, run_mprun: RunCommand, tmp_path: Path, name: str
) -> None:
    """Neither by its own name nor by another."""
    run_dir = kill_mprun(job("fork"))
    before = (run_dir / name).read_bytes()
    (tmp_path / "link").symlink_to(run_dir / name)
    for copy in (run_dir / name, tmp_path / "link"):
        assert f"the run's own {name}" in run_mprun("resume", "--results", copy, run_dir).check(2).stderr
        assert (run_dir / name).read_bytes() == before


def test_a_torn_line_is_run_again(kill_mprun: KillCommand, run_mprun: RunCommand, tmp_path: Path) -> None:
    """A power cut may leave half a line, zeros, or a line with a gap in it."""
    run_dir = kill_mprun(job("spawn"))
    results = run_dir / "results.jsonl"
    lines = results.read_bytes().splitlines(keepends=True)
    lost = [json.loads(lines[at])["task"] for at in (3, 5, -1)]
    lines[3] = b"\0" * (len(lines[3]) - 1) + b"\n"
    lines[5] = lines[5][:20] + lines[5][30:]
    results.write_bytes(b"".join(lines)[:-9])
    (tmp_path / "ran").unlink()
    run_mprun("resume", run_dir).check(1)
    assert {str(task) for task in lost} <= set(harness.marks(tmp_path / "ran"))
    assert [line["task"] for line in stable(run_dir)] == list(range(40))


def test_an_interrupted_run_is_finished(
    start_method: str, start_job: StartCommand, run_mprun: RunCommand, tmp_path: Path
) -> None:
    """Tasks that Ctrl-C has cancelled are run, and the summary covers the whole run."""
    running = start_job(job(start_method, limits={"grace_seconds": 0.1}), scripts=SCRIPTS)
    harness.wait_until(lambda: "20" in harness.marks(tmp_path / "ran"), what="task 20")
    running.send_signal(signal.SIGINT)
    assert running.wait().returncode == 130
    (tmp_path / "go").write_text("go\n", encoding="utf-8")
    run_mprun("resume", running.run_dir).check(1)
    assert [line["task"] for line in stable(running.run_dir)] == list(range(40))
    statuses = [line["status"] for line in stable(running.run_dir)]
    assert statuses.count("ok") == 39 and statuses[7] == "failed"


def change_script(folder: Path) -> None:
    """Another function."""
    script = folder / "job.py"
    script.write_text(script.read_text(encoding="utf-8") + "\n# new\n", encoding="utf-8")


def change_spec(folder: Path) -> None:
    """More tasks."""
    spec = next(folder.glob("*.json"))
    content = json.loads(spec.read_text(encoding="utf-8"))
    content["retries"] = 3
    spec.write_text(json.dumps(content), encoding="utf-8")


def change_input(folder: Path) -> None:
    """Another line of input."""
    with open(folder / "lines.txt", "a", encoding="utf-8") as lines:
        lines.write("more\n")


@pytest.mark.parametrize(
    "change, named", [(change_script, "job.py"), (change_spec, "/retries"), (change_input, "lines.txt")]
)
def test_changes_are_refused_or_accepted(
    run_job: RunCommand, run_mprun: RunCommand, tmp_path: Path, change: Callable[[Path], None], named: str
) -> None:
    """The files that a run was made from must be unchanged, unless an option accepts the change."""
    (tmp_path / "lines.txt").write_text("1\n2\n3\n", encoding="utf-8")
    script = "def run(line):\n    return line\n"
    spec = {"script": "job.py:run", "inputs": {"lines": "lines.txt"}, "processes": 1}
    run_dir = run_job(spec, scripts={"job.py": script}).check().run_dir
    before = (run_dir / "results.jsonl").read_bytes()
    change(tmp_path)
    refused = run_mprun("resume", run_dir).check(2)
    assert named in refused.stderr and "--accept-changes" in refused.stderr
    assert (run_dir / "results.jsonl").read_bytes() == before
    run_mprun("resume", "--accept-changes", run_dir).check()
    run_mprun("resume", run_dir).check()  # from now on it is what the run is made from
    count = 4 if change is change_input else 3
    assert len(stable(run_dir)) == count


def test_the_second_mprun_is_refused(start_job: StartCommand, run_mprun: RunCommand, tmp_path: Path) -> None:
    """No other mprun writes to a run directory while one works in it."""
    running = start_job(job("fork"), scripts=SCRIPTS)
    harness.wait_until(lambda: "20" in harness.marks(tmp_path / "ran"), what="task 20")
    refused = run_mprun("resume", running.run_dir).check(2)
    assert "another mprun" in refused.stderr
    (tmp_path / "go").write_text("go\n", encoding="utf-8")
    running.wait().check(1)


def test_a_folder_that_is_no_run_is_refused(run_job: RunCommand, run_mprun: RunCommand, tmp_path: Path) -> None:
    """No such folder, no run, one without a journal, one of another version: each has its own message."""
    assert "there is no run directory" in run_mprun("resume", tmp_path / "none").check(2).stderr
    (tmp_path / "empty").mkdir()
    assert "is not a run directory" in run_mprun("resume", tmp_path / "empty").check(2).stderr
    spec = {"script": "job.py:run", "inputs": {"range": 2}, "processes": 1}
    run_dir = run_job(spec, scripts={"job.py": "def run(number):\n    return number\n"}).run_dir
    journal = run_dir / "journal.jsonl"
    text = journal.read_text(encoding="utf-8")
    journal.write_text(text.replace('{"journal":1,', '{"journal":2,', 1), encoding="utf-8")
    assert "version 2" in run_mprun("resume", run_dir).check(2).stderr
    journal.unlink()
    assert "kept no journal" in run_mprun("resume", run_dir).check(2).stderr


def test_resume_as_an_option_starts_or_continues(
    kill_mprun: KillCommand, run_job: RunCommand, run_mprun: RunCommand, tmp_path: Path
) -> None:
    """The same command line starts a run and finishes it, for scripts that are queued again."""
    run_dir = kill_mprun(job("fork"), "--resume")
    spec = next(file for file in tmp_path.glob("*.json"))
    run_mprun("--resume", "--output", run_dir, spec).check(1)
    assert [line["task"] for line in stable(run_dir)] == list(range(40))
    refused = run_mprun("--resume", "--output", run_dir, "--chunk-size", "7", spec).check(2)
    assert "/chunk_size" in refused.stderr
    words = ("--set", 'output.tensors="safetensors"', spec)
    assert "/output/tensors" in run_mprun("--resume", "--output", run_dir, *words).check(2).stderr
    assert "--output DIR" in run_mprun("--resume", "-n", "1", spec, timeout=60).check(2).stderr


@pytest.mark.parametrize("written", range(6))
def test_a_run_killed_before_it_began_is_started(
    written: int, run_job: RunCommand, run_mprun: RunCommand, tmp_path: Path
) -> None:
    """Whichever of its first files is there, an empty or torn journal included."""
    spec = {"script": "job.py:run", "inputs": {"range": 2}, "processes": 1}
    first = run_job(spec, scripts={"job.py": "def run(number):\n    return number\n"}).check()
    recorded = (first.run_dir / "job.json").read_text(encoding="utf-8")
    texts = {"job.json": recorded, "results.jsonl": "", "joblog.tsv": "Seq\n", "journal.jsonl": ""}
    for how in ("resume", "--resume"):
        run_dir = tmp_path / f"by {how}"
        (run_dir / "logs").mkdir(parents=True)
        for name, text in list(texts.items())[:written]:
            (run_dir / name).write_text(text, encoding="utf-8")
        if written == 5:
            (run_dir / "journal.jsonl").write_text('{"journal":1,"mpr', encoding="utf-8")
        if how == "--resume":
            run_mprun("--resume", "--output", run_dir, next(tmp_path.glob("*.json"))).check()
        elif written == 0:
            assert "run the job again" in run_mprun("resume", run_dir).check(2).stderr
            continue
        else:
            run_mprun("resume", run_dir).check()
        assert [line["value"] for line in stable(run_dir)] == [0, 1]


def test_files_of_others_are_left_alone(run_mprun: RunCommand, tmp_path: Path) -> None:
    """A directory that only looks like the start of a run is not emptied."""
    (tmp_path / "other" / "logs").mkdir(parents=True)
    (tmp_path / "other" / "mine.txt").write_text("mine\n", encoding="utf-8")
    assert "is not a run directory" in run_mprun("resume", tmp_path / "other").check(2).stderr
    (tmp_path / "other" / "mine.txt").rename(tmp_path / "other" / "logs" / "mine.txt")
    assert "is not a run directory" in run_mprun("resume", tmp_path / "other").check(2).stderr
    assert (tmp_path / "other" / "logs" / "mine.txt").exists()


def test_secrets_come_from_spec_or_environment(run_job: RunCommand, run_mprun: RunCommand, tmp_path: Path) -> None:
    """From the unchanged spec, or else from mprun's environment; the run directory has none of them."""
    script = """
import os

def run(number):
    assert os.environ["API_TOKEN"] == "t-173205" and os.environ["DB_SECRET"] == "s-223606"
    assert number == 0 or os.path.exists("go"), number
    return number
"""
    spec = {"script": "job.py:run", "inputs": {"range": 2}, "env": {"API_TOKEN": "t-173205"}}
    secret = 'env.DB_SECRET="s-223606"'
    run_dir = run_job(spec, "--set", secret, scripts={"job.py": script}).check(1).run_dir
    kept = "".join(path.read_text(encoding="utf-8") for path in run_dir.rglob("*") if path.is_file())
    assert "173205" not in kept and "223606" not in kept
    (tmp_path / "go").write_text("go\n", encoding="utf-8")
    refused = run_mprun("resume", "--retry-failed", run_dir).check(2)
    assert "set DB_SECRET in the environment" in refused.stderr
    run_mprun("resume", "--retry-failed", run_dir, env={"DB_SECRET": "s-223606"}).check()
    assert [line["value"] for line in stable(run_dir)] == [0, 1]


def test_ranks_are_rerun_together(run_job: RunCommand, run_mprun: RunCommand, tmp_path: Path) -> None:
    """Ranks are one computation: unless all succeeded, all run again."""
    script = """
import mprun, os, sys
from events import mark

mark("ran", mprun.rank())
if mprun.rank() == 1 and not os.path.exists("go"):
    sys.exit(3)
mprun.result(mprun.rank())
"""
    spec = {"script": "ranks.py", "processes": 2}
    run_dir = run_job(spec, scripts={"ranks.py": script, "events.py": harness.EVENTS}).check(1).run_dir
    (tmp_path / "ran").unlink()
    (tmp_path / "go").write_text("go\n", encoding="utf-8")
    run_mprun("resume", "--retry-failed", run_dir).check()
    assert sorted(harness.marks(tmp_path / "ran")) == ["0", "1"]
    assert [line["value"] for line in stable(run_dir)] == [0, 1]
