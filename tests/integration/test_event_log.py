"""`-d events`: the log of a real run, replayed by the simulator (tests/simulation) with the same decisions."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness import MPRUN_BIN, RunCommand

SIMULATION = Path(MPRUN_BIN).with_name("mprun_simulation")

SCRIPT = """
import os


def run(number):
    if number % 50 == 7 and os.environ["MPRUN_ATTEMPT"] == "1":
        os._exit(3)
    if number % 25 == 3:
        raise ValueError(number)
    return number
"""


def replay(log: Path) -> subprocess.CompletedProcess[str]:
    if not os.access(SIMULATION, os.X_OK):
        pytest.skip(f"there is no {SIMULATION.name} beside {MPRUN_BIN}")
    words = [str(SIMULATION), "--replay", str(log)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_replay_of_a_real_run(run_job: RunCommand, method: str) -> None:
    spec = {"script": "job.py:run", "processes": 3, "inputs": {"range": 300}, "start_method": method}
    run = run_job(spec, "-d", "events", "--retries", "1", scripts={"job.py": SCRIPT}).check(1)
    log = run.run_dir / "events.log"
    replayed = replay(log)
    assert replayed.returncode == 0, replayed
    assert replayed.stdout.startswith("1 sessions, "), replayed
    text = log.read_text()
    assert text.count("cause=death") == 6
    log.write_text(text.replace("cause=death", "cause=hang", 1))
    assert replay(log).returncode == 1


def test_replay_of_commands(run_job: RunCommand) -> None:
    spec = {"command": ["sh", "-c", "exit $(({} % 3))"], "processes": 2, "inputs": {"range": 20}}
    run = run_job(spec, "-d", "events").check(1)
    replayed = replay(run.run_dir / "events.log")
    assert replayed.returncode == 0, replayed


RANKS = """
import os
import time

if os.environ["RANK"] == "0":
    raise SystemExit(os.environ["MPRUN_ATTEMPT"] == "1")
if os.environ["MPRUN_ATTEMPT"] == "1":
    time.sleep(60)
"""


def test_replay_of_ranks_that_start_again(run_job: RunCommand) -> None:
    run = run_job({"script": "ranks.py", "processes": 2, "retries": 1}, "-d", "events", scripts={"ranks.py": RANKS})
    log = run.check().run_dir / "events.log"
    replayed = replay(log)
    assert replayed.returncode == 0, replayed
    assert log.read_text().count("RetryTask") == 2
