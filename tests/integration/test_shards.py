"""--shard and mprun merge: several mprun on the tasks of one job, without any cluster."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import harness
from harness import RunCommand

SQUARES = """
import os

import numpy as np


def run(number):
    return number * number


def stops(number):
    if number == 3 and os.environ["SLURMD_NODENAME"] == "n1":
        raise ValueError("not here")
    return number


def tensors(number):
    if number == 4:
        raise ValueError("four")
    return {"row": np.full(3, number, dtype=np.float32), "odd": np.zeros(number, dtype=np.int16)}


def lengths(text):
    return len(text)
"""
SPEC = {"script": "job.py:run", "processes": 2, "inputs": {"range": 10}}
SUMMARY = json.loads((harness.ROOT / "configs/summary.schema.json").read_text())


def results(run_dir: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run_dir / "results.jsonl").read_text().splitlines()]


def values(run_dir: Path) -> list[tuple[int, Any]]:
    return [(line["task"], line.get("value")) for line in results(run_dir)]


@pytest.fixture
def run_shards(run_job: RunCommand) -> Any:
    """run_shards(spec, 1, 3, of=3): those shards, below out."""

    def run(spec: dict[str, Any], *shards: int, of: int, code: int = 0, **more: Any) -> None:
        for shard in shards:
            run_job(spec, "--shard", f"{shard}/{of}", "--output", "out", scripts={"job.py": SQUARES}, **more).check(code)

    return run


def test_all_shards_are_one_run(run_shards: Any, run_mprun: RunCommand, tmp_path: Path) -> None:
    run_shards(SPEC, 1, 2, 3, of=3)
    assert [task for task, _ in values(tmp_path / "out/shards/2")] == [3, 4, 5]
    run_mprun("merge", "out").check()
    assert values(tmp_path / "out") == [(number, number * number) for number in range(10)]
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    jsonschema.validate(summary, SUMMARY)
    assert summary["counts"]["total"] == summary["counts"]["ok"] == 10
    workers = {line["worker"] for line in results(tmp_path / "out")}
    assert workers <= set(range(6)) and workers & {4, 5}  # numbered on from shard to shard
    assert len((tmp_path / "out/joblog.tsv").read_text().splitlines()) == 11
    again = run_mprun("merge", "out").check()
    assert "joined 3 shards: 10 ok, 0 failed" in again.stderr
    assert "10 ok" in run_mprun("resume", "out").check().stderr  # a run directory as any other


def test_a_missing_or_unfinished_shard_is_named(run_shards: Any, run_mprun: RunCommand, tmp_path: Path) -> None:
    run_shards(SPEC, 1, 3, of=3)
    (tmp_path / "out/shards/3/summary.json").unlink()
    refused = run_mprun("merge", "out").check(1)
    assert "shard 2 of 3 is missing" in refused.stderr
    assert "shard 3 of 3 (on " in refused.stderr and "has not ended" in refused.stderr
    assert not (tmp_path / "out/results.jsonl").exists()
    assert "mprun merge" in run_mprun("report", "out").check(2).stderr
    run_shards(SPEC, 2, 3, of=3)  # the third goes on
    run_mprun("merge", "out").check()
    assert len(values(tmp_path / "out")) == 10


def test_shards_of_different_runs_do_not_mix(run_shards: Any, run_mprun: RunCommand) -> None:
    run_shards(SPEC, 1, of=2)
    run_shards(SPEC, 3, of=3)
    assert "shards of different runs: " in run_mprun("merge", "out").check(2).stderr


def test_a_run_without_shards_is_left_alone(run_shards: Any, run_job: RunCommand) -> None:
    run_job(SPEC, "--output", "out", scripts={"job.py": SQUARES}).check()
    run_shards(SPEC, 1, of=2, code=2)


def test_results_in_order_of_completion_are_sorted(run_shards: Any, run_mprun: RunCommand, tmp_path: Path) -> None:
    run_shards({**SPEC, "order": "completion", "chunk_size": 1}, 1, 2, of=2)
    path = tmp_path / "out/shards/1/results.jsonl"
    path.write_text("".join(sorted(path.read_text().splitlines(keepends=True), reverse=True)))
    run_mprun("merge", "out").check()
    assert values(tmp_path / "out") == [(number, number * number) for number in range(10)]


def test_tensors_are_gathered_over_all_shards(run_shards: Any, run_mprun: RunCommand, tmp_path: Path) -> None:
    spec = {**SPEC, "script": "job.py:tensors", "processes": 1, "inputs": {"range": [3, 9]}}
    for shard, code in ((1, 1), (2, 0), (3, 0)):
        run_shards({**spec, "output": {"tensors": "npy"}}, shard, of=3, code=code)
    refused = run_mprun("merge", "out").check(2)
    assert "tensors/odd.npy of shard 2 of 3" in refused.stderr and "output.pad" in refused.stderr


def test_tensors_that_fit_equal_those_of_one_machine(
    run_shards: Any, run_job: RunCommand, run_mprun: RunCommand, tmp_path: Path
) -> None:
    spec = {**SPEC, "script": "job.py:tensors", "output": {"pad": {"odd": [10]}}}
    run_job(spec, "--output", "one", scripts={"job.py": SQUARES}).check(1)
    for shard, code in ((1, 1), (2, 0)):
        run_shards(spec, shard, of=2, code=code)
    run_mprun("merge", "out").check(1)
    for name in ("row.npy", "odd.npy"):
        np.testing.assert_array_equal(np.load(tmp_path / "out/tensors" / name), np.load(tmp_path / "one/tensors" / name))
    one, all_of_them = (json.loads((tmp_path / run / "summary.json").read_text()) for run in ("one", "out"))
    assert all_of_them["tensors"] == one["tensors"]
    assert [line.get("tensors") for line in results(tmp_path / "out")] == [
        line.get("tensors") for line in results(tmp_path / "one")
    ]


def test_files_of_single_tasks_are_merged_too(run_shards: Any, run_mprun: RunCommand, tmp_path: Path) -> None:
    spec = {**SPEC, "script": "job.py:tensors", "inputs": {"range": [0, 4]}, "output": {"tensors": "safetensors"}}
    run_shards(spec, 1, 2, of=2)
    run_mprun("merge", "out").check()
    assert sorted(path.name for path in (tmp_path / "out/tensors").iterdir()) == [f"{task}.safetensors" for task in range(4)]


def test_the_hosts_of_shards_are_kept_apart(run_shards: Any, run_mprun: RunCommand, tmp_path: Path) -> None:
    run_shards({**SPEC, "processes": 1}, 1, 2, of=2)
    run_mprun("merge", "out").check()
    run_mprun("report", "--trace", "t.json", "out").check()
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    starts = [(event["pid"], event["tid"]) for event in events if event.get("cat") == "start"]
    assert sorted(set(starts)) == [(1, 0), (1, 1), (2, 0), (2, 1)]  # workers, hosts
    assert {event["name"] for event in events if event.get("cat") == "start"} == {
        "starting Python", "importing job.py", "forking"
    }  # fmt: skip


def test_inputs_of_unknown_number_are_dealt_out(run_shards: Any, run_mprun: RunCommand, tmp_path: Path) -> None:
    spec = {**SPEC, "script": "job.py:lengths", "inputs": {"lines": "-"}}
    for shard in (1, 2):
        reader, writer = os.pipe()
        os.write(writer, b"a\nbb\nccc\ndddd\neeeee\n")
        os.close(writer)
        run_shards(spec, shard, of=2, stdin=reader)
    assert values(tmp_path / "out/shards/2") == [(1, 2), (3, 4)]
    run_mprun("merge", "out").check()
    assert values(tmp_path / "out") == [(task, task + 1) for task in range(5)]


def test_a_shard_without_tasks_ends_well(run_shards: Any, run_mprun: RunCommand, tmp_path: Path) -> None:
    run_shards({**SPEC, "inputs": {"range": 2}}, 1, 2, 3, of=3)
    run_mprun("merge", "out").check()
    assert len(values(tmp_path / "out")) == 2


def test_what_the_environment_says(run_job: RunCommand, tmp_path: Path) -> None:
    array = {
        "SLURM_JOB_ID": "8",
        "SLURM_ARRAY_JOB_ID": "7",
        "SLURM_ARRAY_TASK_ID": "2",
        "SLURM_ARRAY_TASK_COUNT": "2",
        "SLURM_ARRAY_TASK_MIN": "1",
    }
    run = run_job(SPEC, output=False, env=array, scripts={"job.py": SQUARES}).check()
    assert "mprun: shard 2 of 2: tasks 5 to 9, from SLURM_ARRAY_TASK_ID" in run.stderr
    assert len(values(tmp_path / "runs/job/slurm-7/shards/2")) == 5
    odd = run_job(SPEC, output=False, env={**array, "SLURM_ARRAY_TASK_MAX": "5"}).check(2)
    assert "evenly spaced" in odd.stderr and "--shard I/N" in odd.stderr
    run = run_job(SPEC, "--shard", "1/2", output=False, env=array).check()
    assert "shard 1 of 2: tasks 0 to 4\n" in run.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--shard", "3/2"], 'found "3/2", allowed: I/N'),
        (["--shard", "two"], "--shard two"),
        (["--shard", "1/2"], "--output DIR"),
        (["--shard", "1/2", "--output", "x", "--results", "r.jsonl"], "mprun merge DIR"),
    ],
)
def test_what_is_refused(run_job: RunCommand, words: list[str], reason: str) -> None:
    assert reason in run_job(SPEC, *words, output=False, scripts={"job.py": SQUARES}).check(2).stderr


def test_submit_and_merge_name_what_is_wrong(run_mprun: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text("{}")
    for words, reason in (
        (["submit", "job.json"], "--nodes N"),
        (["submit", "--nodes", "2", "job.py"], "a JOB.json"),
        (["submit", "--nodes", "0", "job.json"], "--nodes"),
        (["--wait", "job.json"], "--wait is only valid with `mprun submit`"),
        (["merge", "nothing"], "has no shards"),
        (["merge"], "merge: RUN_DIR is required"),
    ):
        assert reason in run_mprun(*words).check(2).stderr, words


def test_the_joblog_names_the_node_of_a_task(
    run_shards: Any, run_job: RunCommand, run_mprun: RunCommand, tmp_path: Path
) -> None:
    """A shard that continues elsewhere has been on both."""
    spec = {**SPEC, "script": "job.py:stops", "processes": 1, "on_error": "stop", "chunk_size": 1}
    place = {"SLURM_JOB_ID": "1", "SLURM_NNODES": "1"}
    run_shards(spec, 1, of=1, code=1, env={**place, "SLURMD_NODENAME": "n1"})
    words = ["--shard", "1/1", "--output", "out", "--resume", "--retry-failed"]
    run_job(tmp_path / "job.json", *words, env={**place, "SLURMD_NODENAME": "n2"}).check()
    run_mprun("merge", "out").check()
    rows = [line.split("\t") for line in (tmp_path / "out/joblog.tsv").read_text().splitlines()[1:]]
    assert {(int(row[0]) - 1, row[1]) for row in rows} >= {(0, "n1"), (2, "n1"), (3, "n1"), (3, "n2"), (9, "n2")}
