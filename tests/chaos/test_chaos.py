"""A few seconds of chaos for every start method; workers.py and restarts.py run it for as long as requested."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from chaos_jobs import Job
from restarts import restart
from strangers import PID_MAX, beside_strangers, can_shrink_numbers
from workers import torment

import harness


@pytest.fixture
def seed() -> int:
    """MPRUN_TEST_SEED repeats the choices of a failed test."""
    seed = int(os.environ.get("MPRUN_TEST_SEED", time.time_ns() % 1_000_000))
    print("seed", seed)  # shown if the test fails
    return seed


@pytest.mark.parametrize("kind", ["fork", "spawn", "forkserver", "command", "arrays-fork"])
def test_struck_workers_and_hosts_lose_nothing(mprun: Path, tmp_path: Path, seed: int, kind: str) -> None:
    """Killed, stopped and segfaulted ten times a second: results and records are exact, and no process is left."""
    wrong, done = torment(Job(kind, tasks=900, processes=4, seconds=3), tmp_path, seed)
    assert not wrong, "\n".join([done, *wrong])


@pytest.mark.parametrize("kind", ["arrays-fork", "arrays-spawn", "arrays-forkserver", "command", "ranks"])
def test_a_killed_mprun_is_resumed(mprun: Path, tmp_path: Path, seed: int, kind: str) -> None:
    """Guard, supervisor or both: results, tensors and summary are those of an undisturbed run."""
    wrong, done = restart(kind, tmp_path, seed, kills=1)
    assert not wrong, "\n".join([done, *wrong])


@pytest.mark.skipif(not can_shrink_numbers(), reason=f"no PID namespace of {PID_MAX} numbers here: root, Linux 6.14")
@pytest.mark.parametrize("kind", ["fork", "spawn", "forkserver", "command"])
def test_strangers_that_get_a_workers_number_are_left_alone(mprun: Path, kind: str) -> None:
    """Workers are killed, time out, leave processes and kill their host; no process beside the job is signalled."""
    wrong, done = beside_strangers(kind, 200, mprun, harness.MPRUN_PYTHON)
    assert not wrong, "\n".join([done, *wrong])
