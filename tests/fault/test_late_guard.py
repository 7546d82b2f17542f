"""The guard of a program is slow: the process group of its caller is not affected."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from terminal import Terminal

HERE = Path(__file__).resolve().parent

# A session as of a script in CI, with a stopped process. The kernel sends SIGHUP to its group if it takes the
# end of some process in it for that of its shell.
CALLER = """
import os, signal, subprocess, sys

hangups = []
signal.signal(signal.SIGHUP, lambda *_: hangups.append(1))
sleeper = subprocess.Popen(["sleep", "60"])
os.kill(sleeper.pid, signal.SIGSTOP)
os.waitid(os.P_PID, sleeper.pid, os.WSTOPPED | os.WNOWAIT)
code = subprocess.run([sys.argv[1], "--", "sleep", "2"], env={**os.environ, "LD_PRELOAD": sys.argv[2]}).returncode
sleeper.kill()
print(code, len(hangups))
"""


@pytest.fixture(name="library")
def build_library(tmp_path: Path) -> Path:
    library = tmp_path / "late_guard.so"
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror"]
    subprocess.run(["cc", *flags, "-o", str(library), str(HERE / "late_guard.c")], check=True)
    return library


def test_the_caller_gets_no_hangup(mprun: Path, library: Path) -> None:
    words = [sys.executable, "-c", CALLER, str(mprun), str(library)]
    run = subprocess.run(words, capture_output=True, text=True, timeout=60, start_new_session=True, check=False)
    assert run.stdout == "0 0\n", run


def test_ctrl_c_reaches_the_program_once(mprun: Path, library: Path, tmp_path: Path) -> None:
    """The supervisor is still in the program's process group, and gets the signal from the terminal, too."""
    script = (
        "trap 'echo got >>got; n=1' INT; echo >>ready; "
        "while test -z \"$n\"; do sleep 0.02; done; sleep 2; exit 5"
    )
    variables = {"PATH": os.environ["PATH"], "TERM": "xterm", "LD_PRELOAD": str(library)}
    screen = Terminal([str(mprun.resolve()), "--", "sh", "-c", script], tmp_path, variables, 100)
    try:
        harness.wait_until(lambda: harness.marks(tmp_path / "ready"), what="the program")
        screen.type("\x03")
        assert screen.wait() == 5
        assert harness.marks(tmp_path / "got") == ["got"]
    finally:
        screen.close()
