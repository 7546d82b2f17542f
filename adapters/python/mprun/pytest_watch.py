"""Watches a process that runs pytest's tests, from outside: run by pytest_plugin as

    pytest_watch.py PID FOLDER NAME INTERRUPTS STALL

It leaves the tree of PID, prints "ready" when `mprun watch` watches, and ends with PID. About a hang of PID it does, one
after the other as long as the hang stands: what is stuck below PID is killed once, which ends a join; PID is interrupted
(SIGINT), at most INTERRUPTS times; PID is killed with all below it. The hang is proved anew before each.
"""
from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any, Optional


class Watch:
    def __init__(self, pid: int, folder: str, name: str, interrupts: int, stall: Optional[float]) -> None:
        self.pid, self.folder, self.name, self.interrupts, self.stall = pid, folder, name, interrupts, stall
        self.process = os.pidfd_open(pid)
        self.lock = os.open(self.place("lock"), os.O_RDWR | os.O_CLOEXEC)
        self.left = interrupts
        self.may_end_children = True
        self.has_said_ready = False

    def place(self, kind: str) -> str:
        return os.path.join(self.folder, f"{self.name}.{kind}")

    def run(self) -> None:
        """Runs until the process has ended."""
        while True:
            hang, text = self.next_hang("report")
            if hang is None:
                return
            fcntl.flock(self.lock, fcntl.LOCK_EX)
            self.keep(text)
            acted = self.end_stuck_children(hang) or self.interrupt()
            fcntl.flock(self.lock, fcntl.LOCK_UN)
            if not acted:
                self.say_killed(text)
                self.next_hang("kill")

    def keep(self, text: str) -> None:
        """Keeps the first hang of a test: later ones may follow from ending it."""
        if os.path.exists(self.place("hang")):
            return
        self.left, self.may_end_children = self.interrupts, True
        with open(self.place("new"), "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(self.place("new"), self.place("hang"))
        if not self.test():
            print(text, file=sys.stderr, flush=True)  # no test will fail of it

    def say_killed(self, text: str) -> None:
        """Only without xdist, which reports that a worker died."""
        if self.interrupts:
            print(f"\nmprun: no signal ends the wait of {self.test() or 'pytest'}, so pytest is killed\n{text}",
                  file=sys.stderr, flush=True)  # fmt: skip

    def test(self) -> str:
        with open(self.place("test"), encoding="utf-8") as file:
            return file.readline().strip()

    def end_stuck_children(self, hang: dict[str, Any]) -> bool:
        """Once for each test: a Pool replaces its workers, and its lost task stays lost."""
        children = [pid for pid in hang["cannot_return"] if pid != self.pid] if self.may_end_children else []
        self.may_end_children = False
        for pid in children:
            send(pid, signal.SIGKILL)
        return bool(children)

    def interrupt(self) -> bool:
        if self.left == 0:
            return False
        self.left -= 1
        signal.pidfd_send_signal(self.process, signal.SIGINT)
        return True

    def next_hang(self, on_hang: str) -> tuple[Optional[dict[str, Any]], str]:
        """Runs the watch until the process hangs or has ended (None). With "kill" it is ended in either case."""
        from mprun.job_pipe import program

        report = self.place("json")
        words = [program(), "-v", "--on-hang", on_hang, "--hang-report", report]
        words += [] if self.stall is None else ["--stall-seconds", str(self.stall)]
        with subprocess.Popen([*words, "watch", str(self.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, errors="replace") as watch:  # fmt: skip
            assert watch.stderr is not None
            for line in watch.stderr:
                self.say_ready(line)
                hang = take_json(report)
                if hang is None or on_hang == "kill" or not self.concerns(hang):
                    continue
                watch.terminate()  # it still prints the rest
                return hang, line + watch.stderr.read()
        return None, ""

    def concerns(self, hang: dict[str, Any]) -> bool:
        """Whether the process itself is stuck. What is stuck below it does not count while it can go on."""
        if hang["verdict"] == "stalled":
            return self.stall is not None and (hang["seconds_since_progress"] or 0) >= self.stall
        return self.pid in hang["cannot_return"]

    def say_ready(self, line: str) -> None:
        if self.has_said_ready:
            return
        self.has_said_ready = True
        print("ready" if "watches process" in line else line.strip(), flush=True)
        os.dup2(2, 1)  # closes the pipe that pytest reads


def take_json(path: str) -> Optional[dict[str, Any]]:
    """Reads the object in a file and removes the file; None if there is no file."""
    try:
        with open(path, encoding="utf-8") as file:
            hang: dict[str, Any] = json.load(file)
        os.unlink(path)
    except OSError:
        return None
    return hang


def send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process = os.pidfd_open(pid)
        signal.pidfd_send_signal(process, number)
        os.close(process)


def leave_tree() -> None:
    """Goes on in an orphaned child, as mprun cannot watch a tree that it is part of."""
    parent = os.getpid()
    if os.fork() != 0:
        os._exit(0)
    os.setsid()
    with suppress(ProcessLookupError):
        select.select([os.pidfd_open(parent)], [], [])  # readable once its children have another parent


def main() -> None:
    pid, folder, name, interrupts, stall = sys.argv[1:]
    leave_tree()
    Watch(int(pid), folder, name, int(interrupts), float(stall) if stall else None).run()
    if name == "main":
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    main()
