"""--balance dynamic: shards that claim blocks of tasks while they run, without any cluster."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any, Callable

import jsonschema
import numpy as np
import pytest

import harness
from harness import RunCommand, Running, StartCommand, marks, wait_until

# The tasks of a shard wait, one after the other, until the test lets the shard go on.
JOB = """
import os

import numpy as np

from events import mark, wait_for


def run(number):
    shard = os.environ["MPRUN_RUN_DIR"].rpartition("/")[2]
    mark(f"began-{shard}", number)
    if os.path.exists(f"held-{shard}"):
        wait_for(f"go-{shard}")
    return number * number


def tensors(number):
    run(number)
    return {"row": np.full(3, number, dtype=np.float32)}
"""
SCRIPTS = {"job.py": JOB, "events.py": harness.EVENTS}
TASKS = 128  # two a block, between two shards
SPEC = {
    "script": "job.py:run",
    "processes": 1,
    "inputs": {"range": TASKS},
    "balance": "dynamic",
    "output": {"dir": "all"},
}
SUMMARY = json.loads((harness.ROOT / "configs/summary.schema.json").read_text())
StartShard = Callable[..., Running]


@pytest.fixture
def start_shard(start_job: StartCommand, tmp_path: Path) -> StartShard:
    """start_shard(1, spec, "--resume"): shard 1 of 2 below all."""

    def start(shard: int, spec: dict[str, Any], *options: str) -> Running:
        return start_job(spec, "--shard", f"{shard}/2", *options, output=False, scripts=SCRIPTS)

    return start


def results(run_dir: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run_dir / "results.jsonl").read_text().splitlines()]


def check_merged(run_mprun: RunCommand, run_dir: Path) -> str:
    """Every task is there, exactly once; returns the output of merge."""
    merged = run_mprun("merge", run_dir).check()
    assert [(line["task"], line["status"], line["value"]) for line in results(run_dir)] == [
        (number, "ok", number * number) for number in range(TASKS)
    ]
    summary = json.loads((run_dir / "summary.json").read_text())
    jsonschema.validate(summary, SUMMARY)
    assert summary["counts"]["total"] == summary["counts"]["ok"] == TASKS and summary["exit_code"] == 0
    joblog = (run_dir / "joblog.tsv").read_text().splitlines()[1:]
    assert {int(line.split("\t")[0]) for line in joblog} == set(range(1, TASKS + 1))
    return merged.stderr


def hold(tmp_path: Path, shard: int) -> None:
    (tmp_path / f"held-{shard}").touch()


def let_go(tmp_path: Path, shard: int) -> None:
    (tmp_path / f"go-{shard}").write_text("\n")


def wait_for_tasks(tmp_path: Path, shard: int, count: int) -> None:
    wait_until(lambda: len(marks(tmp_path / f"began-{shard}")) >= count, 30, f"{count} tasks of shard {shard}")


def test_a_slow_shard_does_less(start_shard: StartShard, run_mprun: RunCommand, tmp_path: Path) -> None:
    hold(tmp_path, 1)
    slow = start_shard(1, SPEC)
    assert "shard 1 of 2: claims blocks of at most 3 tasks" in wait_until(lambda: slow.stderr, 30)
    wait_for_tasks(tmp_path, 1, 1)
    quick = start_shard(2, SPEC)
    wait_for_tasks(tmp_path, 2, TASKS - 2)  # all but the block that the slow one holds
    assert marks(tmp_path / "began-1") == ["0"]
    let_go(tmp_path, 1)
    assert "2 ok" in slow.wait().check().stderr
    assert f"{TASKS - 2} ok" in quick.wait().check().stderr
    assert "warning" not in check_merged(run_mprun, tmp_path / "all")


def test_tensors_equal_those_of_one_machine(
    start_shard: StartShard, run_job: RunCommand, run_mprun: RunCommand, tmp_path: Path
) -> None:
    spec = {**SPEC, "script": "job.py:tensors"}
    alone = {name: value for name, value in spec.items() if name not in ("balance", "output")}
    run_job(alone, "--output", "one", scripts=SCRIPTS).check()
    shards = [start_shard(shard, spec) for shard in (1, 2)]
    for shard in shards:
        shard.wait().check()
    run_mprun("merge", "all").check()
    np.testing.assert_array_equal(np.load(tmp_path / "all/tensors/row.npy"), np.load(tmp_path / "one/tensors/row.npy"))
    assert [line["value"] for line in results(tmp_path / "all")] == [line["value"] for line in results(tmp_path / "one")]


def test_blocks_of_a_killed_shard_are_taken_over(
    start_shard: StartShard, run_mprun: RunCommand, tmp_path: Path
) -> None:
    spec = {**SPEC, "limits": {"heartbeat_seconds": 1}}
    hold(tmp_path, 1)
    killed = start_shard(1, spec)
    wait_for_tasks(tmp_path, 1, 1)
    killed.stop()
    refused = run_mprun("merge", "all").check(1)
    assert "2 tasks are in the hands of shard 1 of 2" in refused.stderr
    assert "126 tasks are not begun by any shard" in refused.stderr
    other = start_shard(2, spec).wait().check()
    assert "took over tasks 0 to 1 of shard 1, whose heartbeat has stopped" in other.stderr
    output = check_merged(run_mprun, tmp_path / "all")
    assert "shard 1 of 2" in output and "was killed; all its tasks are done nevertheless" in output
    assert len(results(tmp_path / "all/shards/2")) == TASKS


def test_a_shard_that_comes_back_keeps_no_block_it_lost(
    start_shard: StartShard, run_mprun: RunCommand, tmp_path: Path
) -> None:
    spec = {**SPEC, "limits": {"heartbeat_seconds": 1}}
    hold(tmp_path, 1)
    stopped = start_shard(1, spec)
    wait_for_tasks(tmp_path, 1, 1)
    its = [stopped.pid, *(child.pid for child in stopped.children() if child.name == "mprun")]
    workers = [child.pid for child in stopped.children() if child.name != "mprun"]
    for pid in its + workers:
        os.kill(pid, signal.SIGSTOP)
    start_shard(2, spec).wait().check()
    let_go(tmp_path, 1)
    for pid in its:
        os.kill(pid, signal.SIGCONT)
    taken = "another shard has taken over tasks 0 to 1, as this one seemed to be dead"
    harness.wait_until(lambda: taken in stopped.stderr, what="mprun's look at its blocks")
    for pid in workers:
        os.kill(pid, signal.SIGCONT)
    stopped.wait().check()
    assert [line["task"] for line in results(tmp_path / "all/shards/1")] == [0]  # it did not begin the other one
    check_merged(run_mprun, tmp_path / "all")
    assert {line["worker"] for line in results(tmp_path / "all")} == {1}


def test_an_interrupted_shard_goes_on_with_its_own(
    start_shard: StartShard, run_mprun: RunCommand, tmp_path: Path
) -> None:
    hold(tmp_path, 1)
    let_go(tmp_path, 1)
    first = start_shard(1, {**SPEC, "limits": {"tasks_per_worker": 1}})
    wait_for_tasks(tmp_path, 1, 1)
    first.stop()
    (tmp_path / "go-1").unlink()
    before = len(marks(tmp_path / "began-1"))
    again = start_shard(1, {**SPEC, "limits": {"tasks_per_worker": 1}}, "--resume")
    wait_for_tasks(tmp_path, 1, before + 1)
    again.send_signal(signal.SIGUSR2)
    wait_until(lambda: "stopping, as SIGUSR2 asks" in again.stderr, 30)
    let_go(tmp_path, 1)
    again.wait().check(128 + signal.SIGUSR2)
    begun = marks(tmp_path / "began-1")
    third = start_shard(1, {**SPEC, "limits": {"tasks_per_worker": 1}}, "--resume")
    third.wait().check()
    # At most two ran again: the one that was killed, and one whose result had come and was about to be written.
    assert len(marks(tmp_path / "began-1")) <= TASKS + 2 and len(begun) < TASKS
    start_shard(2, {**SPEC, "limits": {"tasks_per_worker": 1}}).wait().check()
    assert not marks(tmp_path / "began-2")
    check_merged(run_mprun, tmp_path / "all")


def test_no_shard_waits_for_one_that_has_left(
    start_shard: StartShard, run_mprun: RunCommand, tmp_path: Path
) -> None:
    hold(tmp_path, 1)
    left = start_shard(1, SPEC)
    wait_for_tasks(tmp_path, 1, 1)
    left.send_signal(signal.SIGINT)
    wait_until(lambda: "stopping" in left.stderr, what="mprun to say that it stops")  # two at once may merge into one
    left.send_signal(signal.SIGINT)
    left.wait().check(130)
    assert f"{TASKS} ok" in start_shard(2, SPEC).wait(30).check().stderr  # heartbeats are missed after a minute
    assert "ended early, with exit code 130" in check_merged(run_mprun, tmp_path / "all")


def test_failures_are_tried_again_by_the_shard_that_had_them(
    start_shard: StartShard, run_mprun: RunCommand, tmp_path: Path
) -> None:
    for shard in (1, 2):
        (tmp_path / f"go-{shard}").mkdir()  # cannot be read
    hold(tmp_path, 2)
    failing = start_shard(2, SPEC)
    failing.wait().check(1)
    start_shard(1, SPEC).wait().check()
    run_mprun("merge", "all").check(1)
    for shard in (1, 2):
        (tmp_path / f"go-{shard}").rmdir()
        let_go(tmp_path, shard)
    start_shard(2, SPEC, "--resume", "--retry-failed").wait().check()
    check_merged(run_mprun, tmp_path / "all")


def test_a_shard_of_another_job_is_refused(start_shard: StartShard, run_mprun: RunCommand) -> None:
    start_shard(1, SPEC).wait().check()
    other = {**SPEC, "inputs": {"range": TASKS + 1}}
    assert f"one of {TASKS} tasks in 2 shards" in start_shard(2, other).wait().check(2).stderr
    assert "use --balance dynamic" in start_shard(2, {**SPEC, "balance": "static"}).wait().check(2).stderr


def test_a_missing_shard_is_no_fault_where_all_is_done(
    start_shard: StartShard, run_mprun: RunCommand, tmp_path: Path
) -> None:
    start_shard(2, SPEC).wait().check()
    assert "shard 1 of 2 is missing" not in check_merged(run_mprun, tmp_path / "all")


@pytest.mark.parametrize(
    ("more", "words", "reason"),
    [
        ({"inputs": {"lines": "-"}}, ["--shard", "1/2"], "--balance static"),
        ({"on_error": "stop"}, ["--shard", "1/2"], "/balance"),
        ({"max_failures": 3}, ["--shard", "1/2"], '"max_failures"'),
        ({"script": "job.py", "inputs": None}, ["--shard", "1/2"], "/balance: is only valid with a function or a command"),
        ({}, ["--balance", "dynamic"], "--shard I/N"),
    ],
)
def test_what_cannot_be_balanced(
    run_job: RunCommand, more: dict[str, Any], words: list[str], reason: str
) -> None:
    spec = {name: value for name, value in {**SPEC, **more}.items() if value is not None}
    reader, writer = os.pipe()
    os.close(writer)
    run = run_job(spec, *words, output=False, scripts=SCRIPTS, stdin=reader).check(2)
    assert reason in run.stderr


def test_a_run_without_shards_has_nothing_to_balance(run_job: RunCommand, tmp_path: Path) -> None:
    run_job(SPEC, output=False, scripts=SCRIPTS).check()
    assert len(results(tmp_path / "all")) == TASKS and not (tmp_path / "all/blocks").exists()


def test_submit_passes_it_on(run_job: RunCommand, run_mprun: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(json.dumps({**SPEC, "script": str(tmp_path / "job.py:run")}))
    (tmp_path / "job.py").write_text(JOB)
    words = ["submit", "--dry-run", "--nodes", "2", "--balance", "dynamic", "job.json"]
    shown = run_mprun(*words).check().stdout
    assert """--set 'balance="dynamic"'""" in shown
    assert "#SBATCH --no-kill\n" in shown and " --no-kill" in shown.partition("exec srun")[2]
    assert "no-kill" not in run_mprun(*words[:4], "--balance", "static", "job.json").check().stdout
