"""A program on a terminal of its own (a pty), as under a shell: for tests of screens and keys."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping
from pathlib import Path

import harness

ROWS, COLUMNS = 24, 100


class Terminal:
    """A program as the leader of a session on a terminal of its own, as under a shell."""

    def __init__(self, argv: list[str], cwd: Path, env: Mapping[str, str], columns: int) -> None:
        size = struct.pack("HHHH", ROWS, columns, 0, 0)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, size)  # here, as the program may draw at once
                os.chdir(cwd)
                os.execve(argv[0], argv, dict(env))
            finally:
                os._exit(127)
        self.output = ""
        self.code: int | None = None

    def type(self, keys: str) -> None:
        """Presses keys."""
        os.write(self.fd, keys.encode())

    def read(self, seconds: float = 0.0) -> bool:
        """Takes the available output; False once the terminal is closed."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # EIO: no process has it open any more
            return False
        self.output += data.decode(errors="replace")
        return bool(data)

    def expect(self, pattern: str, timeout: float = 10) -> re.Match[str]:
        """Reads until the output has the pattern."""
        deadline = time.monotonic() + timeout
        while not (found := re.search(pattern, self.output)):
            more = self.read(0.05)
            if not more and not re.search(pattern, self.output) or time.monotonic() > deadline:
                raise AssertionError(f"no {pattern!r} in {self.output!r}")
        return found

    def wait(self, timeout: float = 30) -> int:
        """Reads to the end; the exit code, negative for a signal."""
        deadline = time.monotonic() + timeout
        while self.code is None:
            self.read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                raise AssertionError(f"not ended after {timeout} s: {self.output!r}")
        while self.read(0.0) and select.select([self.fd], [], [], 0)[0]:
            pass
        return self.code

    def screen(self) -> list[str]:
        """The lines visible at the end, without colours."""
        lines, column = [""], 0
        for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[^\x1b]", self.output):
            if token == "\n":
                lines.append("")
                column = 0
            elif token == "\r":
                column = 0
            elif token == "\x1b[K":
                lines[-1] = lines[-1][:column]
            elif not token.startswith("\x1b"):
                lines[-1] = lines[-1][:column].ljust(column) + token + lines[-1][column + 1 :]
                column += 1
        return [line.rstrip() for line in lines]

    def close(self) -> None:
        """Ends the program if it still runs."""
        if self.code is None:
            for process in [*harness.descendants(self.pid)]:
                try:
                    os.kill(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
