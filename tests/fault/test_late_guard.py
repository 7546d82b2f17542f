"""The guard of a program is slow: the process group of its caller takes no harm."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

# A session as a script in CI has it, with a stopped process. The kernel sends SIGHUP to its group if it takes the
# end of somebody in it for that of its shell.
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


def test_the_caller_gets_no_hangup(mprun: Path, tmp_path: Path) -> None:
    library = tmp_path / "late_guard.so"
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror"]
    subprocess.run(["cc", *flags, "-o", str(library), str(HERE / "late_guard.c")], check=True)
    words = [sys.executable, "-c", CALLER, str(mprun), str(library)]
    run = subprocess.run(words, capture_output=True, text=True, timeout=60, start_new_session=True, check=False)
    assert run.stdout == "0 0\n", run
