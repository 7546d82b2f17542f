"""Jobs for the tests of Slurm, and what they leave."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
from pathlib import Path
from typing import Any

import harness
from cluster import Cluster
from harness import EVENTS, MPRUN_PYTHON

# Each task marks its start; those from 4 on, some of each of two shards, wait until they may end.
PATIENT = """
import os

import events


def run(number):
    events.mark("began", number)
    if number >= 4:
        events.wait_for("go")
    return number * number
"""


def write_job(folder: Path, text: str, **spec: Any) -> Path:
    (folder / "task.py").write_text(text)
    (folder / "events.py").write_text(EVENTS)
    path = folder / "job.json"
    spec = {"version": 1, "script": "task.py:run", "python": MPRUN_PYTHON, "env": {"PYTHONPATH": str(folder)}, **spec}
    path.write_text(json.dumps(spec))
    return path


def results(run_dir: Path) -> list[tuple[int, str, Any]]:
    """Task, status and value, in the order of the file."""
    lines = map(json.loads, (run_dir / "results.jsonl").read_text().splitlines())
    return [(line["task"], line["status"], line.get("value")) for line in lines]


def squares(count: int) -> list[tuple[int, str, int]]:
    return [(number, "ok", number * number) for number in range(count)]


def summary(run_dir: Path) -> dict[str, Any]:
    """Once it is there: Slurm reports the end of a job that it has signalled before mprun has ended."""
    path = run_dir / "summary.json"
    harness.wait_until(path.exists, 60, f"{path}")
    return json.loads(path.read_text())


def wait_until_stopped(run_dir: Path, exit_code: int) -> None:
    """Waits until no mprun works in the directory; if it wrote a summary, that has this code.

    It may have had no time for one: srun in the batch script gets SIGTERM as well, and then kills its tasks at once.
    """

    def is_free() -> bool:
        descriptor = os.open(run_dir, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
        return True

    harness.wait_until(is_free, 60, f"the end of mprun in {run_dir}")
    written = run_dir / "summary.json"
    assert not written.exists() or json.loads(written.read_text())["exit_code"] == exit_code


def wrapped(*words: str | Path) -> str:
    return shlex.join(map(str, words))


def submit(cluster: Cluster, folder: Path, *words: str | Path) -> str:
    """The id of a batch job whose words are in folder/slurm-ID.out."""
    return cluster.command("sbatch", "--parsable", "--chdir", folder, *words).strip()
