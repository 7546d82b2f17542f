"""kill -9 of mprun's own processes: neither the program that it runs nor a worker survives."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

import harness
from harness import Process, Running, StartCommand


def stop(processes: Sequence[int]) -> None:
    """A stopped process does not notice that the others end."""
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    for pid in processes:
        harness.wait_until(lambda: harness.list_processes()[pid].state == "T", what="it to stop")


def programs(running: Running) -> list[Process]:
    return [process for process in running.children() if process.name == "sleep"]


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize(
    "killed",
    [("guard",), ("supervisor",), ("guard", "supervisor"), ("supervisor", "guard")],
    ids="+".join,
)
def test_the_program_does_not_survive(
    start_mprun: StartCommand, tmp_path: Path, killed: tuple[str, ...], copies: int
) -> None:
    """Not even where both are killed at the same instant, so that neither can act for the other."""
    words = ["-n", str(copies)] if copies > 1 else []
    program = ["sh", "-c", "echo >>began; exec sleep 600"]
    running = start_mprun(*words, "--", *program, output=False)
    harness.wait_until(lambda: len(programs(running)) == copies, what="the program")
    (supervisor,) = [process.pid for process in running.children() if process.ppid == running.pid]
    started = programs(running)
    pids = [{"guard": running.pid, "supervisor": supervisor}[name] for name in killed]
    if len(pids) > 1:
        stop(pids)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    harness.wait_until(lambda: not any(harness.is_alive(process.pid) for process in started), what="its end")
    running.process.wait(10)


def test_workers_do_not_survive(start_job: StartCommand, tmp_path: Path, start_method: str) -> None:
    """Where both are killed at the same instant, busy workers do not learn from any channel that mprun is gone."""
    script = "import events\n\ndef run(number):\n    events.mark('began')\n    events.wait_for('never', seconds=600)\n"
    job = {"script": "job.py:run", "start_method": start_method, "processes": 2, "inputs": {"range": 2}}
    running = start_job(job, scripts={"job.py": script, "events.py": harness.EVENTS})
    harness.wait_until(lambda: len(harness.marks(tmp_path / "began")) == 2, timeout=60, what="the tasks")
    (supervisor,) = [process.pid for process in running.children() if process.ppid == running.pid]
    started = [process for process in running.children() if process.pid != supervisor]
    stop([running.pid, supervisor])
    for pid in (running.pid, supervisor):
        os.kill(pid, signal.SIGKILL)
    harness.wait_until(lambda: not any(harness.is_alive(process.pid) for process in started), what="their end")
    running.process.wait(10)
