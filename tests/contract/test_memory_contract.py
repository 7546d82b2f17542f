"""limits.memory_per_worker: a worker that uses too much is ended and named, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import harness
from harness import RunCommand

# "big" tasks take more than the limit, and keep it until they are ended.
GREEDY = """
import subprocess
import sys

from events import wait_for

TAKE = "b = bytearray(400 << 20); b[::4096] = b'x' * len(b[::4096]); "


def take():
    taken = bytearray(400 << 20)
    taken[::4096] = b"x" * len(taken[::4096])
    wait_for("never", seconds=60)


def run(kind):
    if kind == "big":
        take()
    if kind == "child":
        subprocess.run([sys.executable, "-c", TAKE + "import time; time.sleep(60)"], check=True)
    return kind
"""


@pytest.mark.parametrize("kind", ["big", "child"])
def test_a_task_that_takes_too_much(run_job: RunCommand, start_method: str, kind: str) -> None:
    """It is tried again once, then reported as failed, by number; all others are done."""
    items = ["small"] * 12
    items[7] = kind
    run = run_job(
        {
            "script": "greedy.py:run",
            "start_method": start_method,
            "processes": 2,
            "limits": {"memory_per_worker": "200MiB"},
            "inputs": {"items": items},
        },
        scripts={"greedy.py": GREEDY, "events.py": harness.EVENTS},
    ).check(1)
    results = run.results()
    assert [r.get("value") for r in results] == [None if i == 7 else "small" for i in range(12)]
    error = results[7]["error"]
    assert (error["type"], results[7]["attempt"]) == ("MemoryLimit", 2)
    words = r"task 7 used (\d+\.\d) MiB of memory; limits\.memory_per_worker is 200\.0 MiB"
    found = re.fullmatch(words, error["message"])
    assert found and 200 <= float(found[1]) < 600, error
    assert re.search("task 7 is tried again: " + words, run.stderr), run
    assert [result["attempt"] for result in results if result["task"] != 7] == [1] * 11


@pytest.mark.parametrize("kind", ["command", "rank"])
def test_a_command_or_rank_that_takes_too_much(run_job: RunCommand, kind: str) -> None:
    script = GREEDY + "\n\nif __name__ == '__main__':\n    take()\n"
    spec = (
        {"script": "greedy.py", "processes": 2}
        if kind == "rank"
        else {
            "command": [harness.MPRUN_PYTHON, "greedy.py", "{}"],
            "processes": 1,
            "inputs": {"range": 1},
        }
    )
    run = run_job(
        {**spec, "limits": {"memory_per_worker": "200MiB"}},
        scripts={"greedy.py": script, "events.py": harness.EVENTS},
    ).check(1)
    errors = [result["error"] for result in run.results()]
    assert "MemoryLimit" in [error["type"] for error in errors]


SHARED_MODEL = """
import time

model = None


def setup():
    global model
    model = bytearray(400 << 20)
    model[::4096] = b"x" * len(model[::4096])


def run(number):
    time.sleep(0.3)  # long enough to be looked at
    return sum(model[:: 1 << 20])
"""


def test_a_model_loaded_before_the_fork_counts_for_no_worker(run_job: RunCommand) -> None:
    """Eight workers, and in the end a single one, share it with their host."""
    run = run_job(
        {
            "script": "model.py:run",
            "setup": "setup",
            "start_method": "fork",
            "processes": 8,
            "limits": {"memory_per_worker": "150MiB", "tasks_per_worker": 3},
            "inputs": {"range": 25},
        },
        scripts={"model.py": SHARED_MODEL},
    ).check()
    assert run.values() == [400 * ord("x")] * 25
    assert {p["expected"] for p in run.summary()["processes"]} == {True}
    assert run.summary()["counts"]["retried"] == 0


def test_copies_of_a_shared_model_count(run_job: RunCommand) -> None:
    """A worker that writes to it gets pages of its own, though it has no more than before."""
    writes = """

def write(number):
    for at in range(0, len(model), 4096):
        model[at] = 1
    time.sleep(60)
"""
    run = run_job(
        {
            "script": "model.py:write",
            "setup": "setup",
            "start_method": "fork",
            "processes": 1,
            "retries": 0,
            "limits": {"memory_per_worker": "150MiB"},
            "inputs": {"range": 1},
        },
        scripts={"model.py": SHARED_MODEL + writes},
    ).check(1)
    assert run.results()[0]["error"]["type"] == "MemoryLimit"


def test_shared_tensors_count_for_no_worker(run_job: RunCommand, start_method: str) -> None:
    """Not even where only one process has mapped them."""
    script = """
import time

import mprun


def run(number):
    mprun.shared["table"][:] = 1
    time.sleep(0.5)  # long enough to be looked at
    return number
"""
    run = run_job(
        {
            "script": "share.py:run",
            "start_method": start_method,
            "processes": 1,
            "shared": {"table": {"shape": [300 << 17], "dtype": "float64"}},
            "limits": {"memory_per_worker": "250MiB"},
            "inputs": {"range": 2},
        },
        scripts={"share.py": script},
    ).check()
    assert run.values() == [0, 1]


def test_a_start_that_takes_too_much(run_job: RunCommand, start_method: str) -> None:
    """Every worker would exceed the limit: the job ends with one report."""
    script = GREEDY.replace("def run", "def worker_setup():\n    take()\n\n\ndef run")
    run = run_job(
        {
            "script": "greedy.py:run",
            "worker_setup": "worker_setup",
            "start_method": start_method,
            "processes": 1,
            "limits": {"memory_per_worker": "200MiB"},
            "inputs": {"items": ["small"]},
        },
        scripts={"greedy.py": script, "events.py": harness.EVENTS},
    ).check(3)
    assert "while it was starting: worker 0 used" in run.stderr
    assert "limits.memory_per_worker is 200.0 MiB" in run.stderr


def test_a_limit_that_makes_no_sense(run_job: RunCommand, tmp_path: Path) -> None:
    for size, words in (("2G", '"2GiB"'), ("900TB", "more than there is")):
        run = run_job(
            {
                "script": "greedy.py:run",
                "limits": {"memory_per_worker": size},
                "inputs": {"items": []},
            },
            scripts={"greedy.py": GREEDY},
        ).check(2)
        assert "/limits/memory_per_worker" in run.stderr and words in run.stderr
