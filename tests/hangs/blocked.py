"""Determines from outside, by /proc alone, that a program is blocked for good."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import harness
from harness import Process, Running

STILL_SECONDS = 3  # without any change, before it counts as a hang
MPRUN_NAMES = frozenset({"mprun"})


class Stillness:
    """Watches one program, look by look, until none of its threads has run for STILL_SECONDS.

    A deadline alone would have to be long: on a loaded machine programs are many seconds late.
    A thread that was not put on a CPU for seconds, though it was not waiting for one, is blocked:
    the kernel counts how often it was. Threads that wait only for a moment are seen to run.
    """

    def __init__(
        self, running: Running, states: str = "SDZ", main_only: bool = False, beside: bool = False
    ) -> None:
        """`states`: those in which a thread counts as blocked.

        `main_only`: only its first thread counts; `beside`: only the threads beside its first thread.
        """
        self.running = running
        self._beside = beside
        self.processes: list[Process] = []
        self._states = states
        self._main_only = main_only
        self._before: dict[str, str] | None = None
        self._since = time.monotonic()

    def look(self, everyone: Mapping[int, Process] | None = None) -> bool:
        """True once it is still; fails if it has ended. `everyone`: all existing processes."""
        self.processes = program_processes(self.running, everyone)
        assert self.processes, (
            f"the program has ended\n{self.running.stdout}\n{self.running.stderr}"
        )
        if self._main_only:
            now = picture([f"/proc/{self.running.pid}/task/{self.running.pid}"], self._states)
        else:
            folders = task_folders(self.processes)
            main = f"/proc/{self.running.pid}/task/{self.running.pid}"
            rest = [folder for folder in folders if not self._beside or folder != main]
            now = picture(rest, self._states) or None
        if now is None or now != self._before:
            self._before, self._since = now, time.monotonic()
        return time.monotonic() - self._since >= STILL_SECONDS


def wait_until_blocked(running: Running, timeout: float = 120) -> list[Process]:
    """Waits until no thread of the program runs any more; fails if it ended, or still runs at the timeout."""
    stillness = Stillness(running)
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if stillness.look():
            return stillness.processes
        time.sleep(0.05)
    raise AssertionError(f"the program was not blocked for good within {timeout} s")


def program_processes(
    running: Running, everyone: Mapping[int, Process] | None = None
) -> list[Process]:
    """The living processes of the program that was started, with or without mprun above it."""
    below = [process for process in harness.descendants(running.pid, everyone) if process.alive]
    if running.process.poll() is None:
        below.append(Process(running.pid, Path(running.argv[0]).name, "?", 0))
    return [process for process in below if process.name not in MPRUN_NAMES]


def task_folders(processes: Sequence[Process]) -> list[str]:
    """The folder of each of their threads in /proc; a process whose threads cannot be listed gives that one."""
    folders = []
    for process in processes:
        tasks = Path(f"/proc/{process.pid}/task")
        try:
            folders += [str(task) for task in tasks.iterdir()]
        except OSError:
            folders.append(str(tasks))
    return folders


def picture(folders: Sequence[str], states: str = "SDZ") -> dict[str, str] | None:
    """How often each of the threads was put on a CPU; None if one runs or has just ended."""
    seen = {}
    for folder in folders:
        try:
            stat = Path(folder, "stat").read_text(errors="replace")
            if stat.rpartition(")")[2].split()[0] not in states:
                return None
            seen[folder] = Path(folder, "schedstat").read_text().split()[2]
        except OSError:
            return None
    return seen
