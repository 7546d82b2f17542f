"""Tells from outside, by /proc alone, that a program is blocked for good."""

from __future__ import annotations

import time
from pathlib import Path

from harness import Process, Running

STILL_SECONDS = 3  # of one and the same picture, before it counts as a hang
MPRUN_NAMES = frozenset({"mprun"})


def wait_until_blocked(running: Running, timeout: float = 120) -> list[Process]:
    """Waits until nothing of the program moves any more; fails if it ended, or moves to the end.

    A deadline alone would have to be long: on a loaded machine programs are late by many seconds.
    A thread that was never put on a CPU for seconds, though it was not waiting for one, is blocked:
    the kernel counts the times that it was. Threads that wait for a moment are seen to run.
    """
    deadline = time.monotonic() + timeout
    before, since = None, time.monotonic()
    while time.monotonic() < deadline:
        processes = program_processes(running)
        assert processes, f"the program has ended\n{running.stdout}\n{running.stderr}"
        now = picture(processes)
        if now is None or now != before:
            before, since = now, time.monotonic()
        elif time.monotonic() - since >= STILL_SECONDS:
            return processes
        time.sleep(0.05)
    raise AssertionError(f"the program was not blocked for good within {timeout} s")


def program_processes(running: Running) -> list[Process]:
    """The living processes of the program that was started, with or without mprun above it."""
    below = running.children()
    if running.process.poll() is None:
        below.append(Process(running.pid, Path(running.argv[0]).name, "?", 0))
    return [process for process in below if process.name not in MPRUN_NAMES]


def picture(processes: list[Process]) -> dict[str, str] | None:
    """Every thread and how often it was put on a CPU; None if one runs or has just ended."""
    seen = {}
    for process in processes:
        try:
            for task in Path(f"/proc/{process.pid}/task").iterdir():
                state = (task / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
                if state not in "SDZ":
                    return None
                seen[task.name] = (task / "schedstat").read_text().split()[2]
        except OSError:
            return None
    return seen
