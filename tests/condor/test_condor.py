"""mprun in jobs of a real HTCondor, where tests/condor/pool.py can start one: in newer Debians than 12."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import EVENTS, MPRUN_PYTHON, RunCommand, marks, wait_until
from pool import Pool, why_not

pytestmark = pytest.mark.xdist_group("condor")  # one pool at a time

TASK = """
import os

import events


def run(number):
    events.mark("began", number)
    if number >= 4:
        events.wait_for("go")
    return [number, os.environ["MPRUN_WORKERS"], os.environ["OMP_NUM_THREADS"]]
"""

# As in mprun(1).
DESCRIPTION = """
executable = {mprun}
arguments = --shard $INT(Shard)/2 --output out {job}
Shard = $(Process) + 1
request_cpus = 2
request_memory = 64M
should_transfer_files = NO
initialdir = {folder}
error = {folder}/error.$(Process)
queue 2
"""


@pytest.fixture
def pool(tmp_path: Path, nothing_left: None) -> Iterator[Pool]:
    """An idle one; skips where HTCondor is not available."""
    if reason := why_not():
        pytest.skip(reason)
    with Pool(tmp_path / "pool") as running:
        yield running


def write_job(folder: Path) -> Path:
    (folder / "task.py").write_text(TASK)
    (folder / "events.py").write_text(EVENTS)
    spec = {
        "version": 1,
        "script": "task.py:run",
        "inputs": {"range": 10},
        "python": MPRUN_PYTHON,
        "env": {"PYTHONPATH": str(folder)},
        "limits": {"grace_seconds": 0.5},
        "retries": 0,
    }
    path = folder / "job.json"
    path.write_text(json.dumps(spec))
    return path


def results(folder: Path) -> list[Any]:
    return [json.loads(line)["value"] for line in (folder / "results.jsonl").read_text().splitlines()]


def test_shards_use_the_cpus_of_their_jobs(pool: Pool, tmp_path: Path, mprun: Path, run_mprun: RunCommand) -> None:
    """HTCondor sets OMP_NUM_THREADS to the CPUs of a job, which are there for all workers together."""
    (tmp_path / "go").write_text("\n")
    pool.submit(DESCRIPTION.format(mprun=mprun, job=write_job(tmp_path), folder=tmp_path))
    pool.wait_for_end()
    assert "joined 2 shards: 10 ok" in run_mprun("merge", tmp_path / "out").check().stderr
    assert results(tmp_path / "out") == [[number, "2", "1"] for number in range(10)]


def test_an_evicted_job_goes_on(pool: Pool, tmp_path: Path, mprun: Path, run_mprun: RunCommand) -> None:
    """HTCondor sends SIGTERM, and starts the job again with the same command."""
    number = pool.submit(DESCRIPTION.format(mprun=mprun, job=write_job(tmp_path), folder=tmp_path))
    wait_until(lambda: {"4", "5", "6"} <= set(marks(tmp_path / "began")), 60, "both shards to work")
    pool.command("condor_vacate_job", number)
    wait_until(lambda: marks(tmp_path / "began").count("5") == 2, 60, "the second shard to begin again")
    (tmp_path / "go").write_text("\n")
    pool.wait_for_end()
    run_mprun("merge", tmp_path / "out").check()
    assert [value[0] for value in results(tmp_path / "out")] == list(range(10))
    assert marks(tmp_path / "began").count("0") == 1
