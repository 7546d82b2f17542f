"""`mprun -- COMMAND` with a standard error that is not read: signals, hangs and ends do not wait for a reader."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path

import pytest

import harness
from harness import StartCommand
from terminal import Terminal

STUCK = "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()\n"

# Its child is stuck, and it waits for nothing but signals.
BESIDE_STUCK = """
import signal, subprocess, sys

signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(17))
child = subprocess.Popen([sys.executable, "stuck.py"])
while True:
    signal.sigtimedwait([], 60)
"""


class FullPipe:
    """A pipe that takes nothing any more until it is read."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.filled = fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, 4096)
        os.write(self.writer, b"x" * self.filled)

    def as_stderr(self) -> None:
        """In the child, before it runs mprun."""
        os.dup2(self.writer, 2)

    def read_rest(self) -> str:
        """What was written after it was full, once no other process can write."""
        os.close(self.writer)
        with open(self.reader, encoding="utf-8") as rest:
            return rest.read()[self.filled :]


def start_with(
    pipe: FullPipe, start_mprun: StartCommand, folder: Path, script: str, *options: str
) -> harness.Running:
    (folder / "stuck.py").write_text(STUCK)
    (folder / "script.py").write_text(script)
    argv = [*options, "--", harness.MPRUN_PYTHON, "script.py"]
    return start_mprun(*argv, output=False, preexec_fn=pipe.as_stderr)


def test_a_hung_program_is_ended_even_if_its_report_is_not_read(start_mprun: StartCommand, tmp_path: Path) -> None:
    """Its end does not wait for a reader of the report; the report does."""
    pipe = FullPipe()
    report = tmp_path / "hang.json"
    options = ["--on-hang", "kill", "--hang-report", str(report)]
    running = start_with(pipe, start_mprun, tmp_path, STUCK, *options)
    harness.wait_until(report.exists, what="the report")
    harness.wait_until(lambda: not running.children()[1:], what="the end of the program")
    assert running.process.poll() is None  # its last words are not lost
    report = pipe.read_rest()
    assert report.startswith("mprun: hang proved (deadlock): ")
    assert "\ncause: " in report
    running.wait().check(124)


def test_signals_reach_a_program_even_if_its_report_is_not_read(start_mprun: StartCommand, tmp_path: Path) -> None:
    """The report of a hang waits for its reader, and nothing else."""
    pipe = FullPipe()
    report = tmp_path / "hang.json"
    running = start_with(
        pipe, start_mprun, tmp_path, BESIDE_STUCK, "--hang-report", str(report)
    )
    harness.wait_until(report.exists, what="the report")
    running.send_signal(signal.SIGTERM)
    harness.wait_until(lambda: not running.children()[1:], what="the end of the program")
    assert "hang proved (partial-deadlock)" in pipe.read_rest()
    running.wait().check(17)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_last_messages_that_are_not_read_can_be_cut_short(
    start_mprun: StartCommand, tmp_path: Path, number: int
) -> None:
    pipe = FullPipe()
    report = tmp_path / "hang.json"
    options = ["--on-hang", "kill", "--hang-report", str(report)]
    running = start_with(pipe, start_mprun, tmp_path, STUCK, *options)
    harness.wait_until(report.exists, what="the report")
    harness.wait_until(lambda: not running.children()[1:], what="the end of the program")

    def is_stopped() -> bool:
        running.send_signal(number)
        return running.process.poll() is not None

    harness.wait_until(is_stopped, what="its end")  # what comes while it ends the program is of no use
    running.wait().check(128 + number)
    assert pipe.read_rest() == ""


def test_ctrl_c_cuts_short_what_is_not_read(mprun: Path, tmp_path: Path) -> None:
    """The program has ended, so that the terminal's signals are for mprun."""
    pipe = FullPipe()
    os.set_inheritable(pipe.writer, True)
    (tmp_path / "stuck.py").write_text(STUCK)
    command = f"exec {mprun.resolve()} --on-hang kill -- {harness.MPRUN_PYTHON} stuck.py 2>&{pipe.writer}"
    terminal = Terminal(["/bin/bash", "-c", command], tmp_path, {**os.environ}, 80)
    try:

        def below() -> list[harness.Process]:
            return [process for process in harness.descendants(terminal.pid) if process.alive]

        harness.wait_until(lambda: len(below()) > 1, what="the program")
        harness.wait_until(lambda: len(below()) == 1, what="the end of the program")

        def is_stopped() -> bool:
            terminal.type("\x03")
            return os.waitid(os.P_PID, terminal.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

        harness.wait_until(is_stopped, what="its end")
        assert terminal.wait() == 130
    finally:
        terminal.close()
    assert pipe.read_rest() == ""
