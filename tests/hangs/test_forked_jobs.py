"""Jobs by fork whose `setup` has used OpenMP: a fork per task, and every one works."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from harness import RunCommand

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

TASKS = 40

# Integers: the sums do not depend on how the threads share the work.
SCRIPT = """
import os
import torch

def compute(factor):
    return int((torch.arange(500_000) * factor % 1009).sum())

def warm_up():
    torch.set_num_threads(2)
    compute(3)

def count_threads():
    return len(os.listdir("/proc/self/task"))

def task(number):
    before = count_threads()
    return {"value": compute(number), "pid": os.getpid(), "threads": [before, count_threads()]}
"""


def spec(start_method: str) -> dict[str, object]:
    return {
        "script": "task.py",
        "function": "task",
        "setup": "warm_up",
        "start_method": start_method,
        "processes": 4,
        "threads_per_worker": 2,
        "inputs": {"range": TASKS},
    }


def test_a_fork_per_task(run_job: RunCommand) -> None:
    """4 workers x 10 forks compute the same as spawned ones, each with a process and team of its own."""
    files = {"task.py": SCRIPT}
    limits = {"tasks_per_worker": 1}
    forked = run_job({**spec("fork"), "limits": limits}, scripts=files, timeout=180).check()
    assert "warning" not in forked.stderr
    values = forked.values()
    assert len({value["pid"] for value in values}) == TASKS
    assert [value["threads"] for value in values] == [[1, 2]] * TASKS
    spawned = run_job(spec("spawn"), scripts=files, timeout=180).check()
    assert [value["value"] for value in values] == [value["value"] for value in spawned.values()]


WARMED_PRELOAD = """
import torch
torch.set_num_threads(2)
torch.arange(500_000).mul(3).remainder(1009).sum()
"""

ALONE = """
import os

def task(number):
    status = open("/proc/%d/status" % os.getppid()).read()
    return int(status.split("Threads:")[1].split()[0])
"""


def forkserver(script: str, preload: str) -> dict[str, object]:
    return {
        "script": script,
        "function": "task",
        "start_method": "forkserver",
        "preload": [preload],
        "processes": 2,
        "threads_per_worker": 2,
        "inputs": {"range": 6},
        "limits": {"tasks_per_worker": 1},
    }


def test_a_forkserver_that_was_warmed_up(run_job: RunCommand, tmp_path: Path) -> None:
    """Its preload used OpenMP: the hooks are needed there, too."""
    files = {"task.py": SCRIPT, "warmed.py": WARMED_PRELOAD}
    env = {"PYTHONPATH": str(tmp_path)}
    run = run_job(forkserver("task.py", "warmed"), scripts=files, env=env, timeout=120).check()
    assert [value["threads"] for value in run.values()] == [[1, 2]] * 6


def test_a_plain_forkserver_has_one_thread_and_no_hooks(run_job: RunCommand, tmp_path: Path) -> None:
    """Nothing there waits or is ended: a hook that may only run beside other threads is not called."""
    run = run_job(forkserver("alone.py", "json"), scripts={"alone.py": ALONE}, timeout=120).check()
    assert run.values() == [1] * 6
    assert run.stderr.count("warning") == 0
