"""kill -9 of mprun's own processes: the program that it runs does not survive."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

import harness
from harness import Process, Running, StartCommand


def stop(processes: Sequence[int]) -> None:
    """Whoever is stopped learns nothing of the end of the others."""
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
    """Not even where both are killed in one instant, so that none can act for the other."""
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
