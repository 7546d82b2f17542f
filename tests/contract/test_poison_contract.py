"""Tasks that kill their workers: tried alone, blamed, and kept from harming other tasks."""

from __future__ import annotations

import re

import pytest

import harness
from harness import RunCommand

POISON = """
import ctypes
import os
import resource

from events import mark

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(number):
    if number in (17, 500, 997):
        mark(f"poison-{number}", os.getpid())
        ctypes.string_at(0)
    mark("runs", number)
    return number * 2
"""


@pytest.mark.parametrize("retries", [1, 6])
def test_poison_among_a_thousand(run_job: RunCommand, start_method: str, retries: int) -> None:
    """All others run exactly once, on their first attempt; the three are blamed."""
    run = run_job(
        {
            "script": "poison.py:run",
            "start_method": start_method,
            "processes": 2,
            "retries": {"on_death": retries},
            "inputs": {"range": 1000},
        },
        scripts={"poison.py": POISON, "events.py": harness.EVENTS},
        timeout=120,
    ).check(1)
    results = run.results()
    poison = {17, 500, 997}
    assert [r.get("value") for r in results] == [
        None if task in poison else task * 2 for task in range(1000)
    ]
    assert {r["attempt"] for r in results if r["task"] not in poison} == {1}
    folder = run.run_dir.parent
    assert sorted(map(int, harness.marks(folder / "runs"))) == sorted(set(range(1000)) - poison)
    for task in poison:
        assert results[task]["attempt"] == retries + 1
        pids = harness.marks(folder / f"poison-{task}")
        assert len(pids) == retries + 1
        words = results[task]["error"]["message"]
        assert f"; task {task} ended {retries + 1} workers (pid {pids[0]}: signal 11" in words
        assert f", pid {pids[1]}: signal 11" in words
        alone = r"alone (on the second|from the second on|from the first on)"
        assert re.search(alone + ": the task is at fault$", words), words
    assert run.summary()["counts"]["retried"] == 3 * retries


def test_a_single_death_blames_no_task(run_job: RunCommand, start_method: str) -> None:
    script = "import os\n\n\ndef run(n):\n    os._exit(3) if n == 2 else None\n    return n\n"
    run = run_job(
        {
            "script": "die.py:run",
            "start_method": start_method,
            "processes": 1,
            "retries": 0,
            "inputs": {"range": 4},
        },
        scripts={"die.py": script},
    ).check(1)
    assert [result["status"] for result in run.results()] == ["ok", "ok", "failed", "ok"]
    assert "at fault" not in run.results()[2]["error"]["message"]
