"""usage.jsonl: the CPU time and memory of workers with all their descendants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import RunCommand, StartCommand

MIB = 2**20
JOB = """
import os
import subprocess
import sys
import time

from events import mark, wait_for

CHILD = "import sys; held = bytearray(150 * 2**20); print(flush=True); sys.stdin.read()"


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def work(seconds):
    held = bytearray(100 * 2**20)
    burn(seconds)
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    child.stdout.readline()
    mark("busy")
    wait_for("go")
    child.communicate()
    return len(held)


if __name__ == "__main__":
    work(0.3)
"""


def usage(run_dir: Path) -> list[dict[str, Any]]:
    """The whole lines so far."""
    path = run_dir / "usage.jsonl"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def of_worker(run_dir: Path, worker: int) -> Iterator[tuple[float, int]]:
    """CPU seconds and bytes, over time."""
    for line in usage(run_dir):
        for number, cpu, memory in line["workers"]:
            if number == worker:
                yield cpu, memory


def largest(run_dir: Path, worker: int) -> tuple[float, int]:
    seen = list(of_worker(run_dir, worker))
    return max((cpu for cpu, _ in seen), default=0), max((memory for _, memory in seen), default=0)


def jobs() -> dict[str, dict[str, Any]]:
    """The same work by each kind of job."""
    function = {"script": "job.py:work", "inputs": {"items": [0.3, 0.3]}}
    ranks = {"script": "job.py"}
    return {
        "fork": {**function, "start_method": "fork"},
        "forkserver": {**function, "start_method": "forkserver"},
        "spawn": {**function, "start_method": "spawn"},
        "ranks": {**ranks, "start_method": "spawn"},
        "forked ranks": {**ranks, "start_method": "fork"},
        "command": {
            "command": [harness.MPRUN_PYTHON, "job.py"],
            "inputs": {"range": 2},
        },
    }


@pytest.mark.parametrize("kind", jobs())
def test_workers_and_their_descendants(
    start_job: StartCommand, tmp_path: Path, kind: str
) -> None:
    """A worker of 100 MiB and its child of 150, which stay until they have been sampled."""
    running = start_job(
        {**jobs()[kind], "processes": 2}, scripts={"job.py": JOB, "events.py": harness.EVENTS}
    )
    harness.wait_until(
        lambda: all(
            cpu >= 0.3 and memory > 250 * MIB
            for cpu, memory in (largest(running.run_dir, worker) for worker in range(2))
        ),
        what=f"the use of both workers: {usage(running.run_dir)}",
    )
    (tmp_path / "go").write_text("\n")
    run = running.wait().check()
    lines = usage(run.run_dir)
    assert [list(line) for line in lines] == [["at", "workers"]] * len(lines)
    times = [line["at"] for line in lines]
    assert times == sorted(times)
    assert times[0] > 1.6e9
    for worker in range(2):
        cpu, memory = zip(*of_worker(run.run_dir, worker))
        assert list(cpu) == sorted(cpu), "CPU time that was used cannot be given back"
        assert max(memory) < 600 * MIB


def test_commands_of_a_slot_add_up(start_job: StartCommand, tmp_path: Path) -> None:
    """CPU time of commands that have ended stays with their slot, whether or not a sample caught them."""
    script = (
        "import time, sys\nfrom events import mark, wait_for\n"
        "while time.process_time() < 0.3: pass\n"  # the kernel counts in ticks, and rounds down
        "if sys.argv[1] == '2':\n    wait_for('go')\n"
    )
    running = start_job(
        {
            "command": [harness.MPRUN_PYTHON, "burn.py", "{}"],
            "processes": 1,
            "inputs": {"range": 3},
        },
        scripts={"burn.py": script, "events.py": harness.EVENTS},
    )
    harness.wait_until(
        lambda: largest(running.run_dir, 0)[0] >= 0.75, what="three times a quarter of a second"
    )
    (tmp_path / "go").write_text("\n")
    running.wait().check()


def cut_short(start_job: StartCommand, tmp_path: Path) -> Path:
    """The directory of a run that was killed after its worker had been sampled."""
    running = start_job(
        {"script": "job.py:work", "processes": 1, "inputs": {"items": [0, 0]}},
        scripts={"job.py": JOB, "events.py": harness.EVENTS},
    )
    harness.wait_until(lambda: largest(running.run_dir, 0)[1] > 0, what="a look")
    running.stop()
    (tmp_path / "go").write_text("\n")
    return running.run_dir


def test_a_resumed_run_goes_on(
    start_job: StartCommand, run_mprun: RunCommand, tmp_path: Path
) -> None:
    run_dir = cut_short(start_job, tmp_path)
    before = usage(run_dir)
    run_mprun("resume", run_dir).check()
    after = usage(run_dir)
    assert after[: len(before)] == before
    assert len(after) > len(before)


def test_a_run_is_not_harmed(
    start_job: StartCommand, run_mprun: RunCommand, tmp_path: Path
) -> None:
    """Where the file cannot be written: a warning, all results, exit code 0."""
    run_dir = cut_short(start_job, tmp_path)
    (run_dir / "usage.jsonl").unlink()
    (run_dir / "usage.jsonl").mkdir()
    run = run_mprun("resume", run_dir).check()
    assert run.stderr.count("usage.jsonl") == 1
    notices = json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))["notices"]
    assert any("usage.jsonl" in notice["text"] for notice in notices)
    assert len((run_dir / "results.jsonl").read_text(encoding="utf-8").splitlines()) == 2
