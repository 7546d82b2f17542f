"""The live view of a job as a terminal shows it: --view, resizing, messages, silent phases."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyte
import pytest

import harness
from harness import StartCommand

JOB = """
import os
from events import mark, wait_for


def run(number):
    mark("begun", number)
    wait_for("go", lines=number + 1, seconds=60)
    if number == 0:
        raise ValueError("out of luck")
    return "x" * 1000


def setup():
    mark("set up")
    wait_for("warm", seconds=60)
"""
HEADING = "worker  state      task     age    CPU  memory"
ROW = r" +\d+  busy +\d+ +\d+s +\d+% +\d+M"


class Screen:
    """A program on a terminal of its own, and its screen."""

    def __init__(
        self, argv: list[str], cwd: Path, env: Mapping[str, str], columns: int, rows: int
    ) -> None:
        self.shown = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.shown)
        self.raw = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.chdir(cwd)
                os.execve(argv[0], argv, dict(env))
            finally:
                os._exit(127)
        self.code: int | None = None

    def resize(self, columns: int, rows: int) -> None:
        """Like a terminal that cuts lines off, such as xterm."""
        self.take(0)
        self.shown.resize(rows, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def take(self, seconds: float) -> None:
        """Shows the available output."""
        while self.code is None and select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # EIO: no process has it open any more
                break
            self.raw += data
            self.stream.feed(data)
            seconds = 0

    def lines(self) -> list[str]:
        """The visible screen, without the empty lines at the end."""
        text = "\n".join(line.rstrip() for line in self.shown.display).rstrip("\n")
        return text.split("\n")

    def until(self, pattern: str, timeout: float = 20) -> list[str]:
        """Waits until the screen has the pattern; returns its lines."""
        deadline = time.monotonic() + timeout
        while not re.search(pattern, "\n".join(self.lines()), re.MULTILINE):
            if time.monotonic() > deadline:
                raise AssertionError(f"no {pattern!r} on the screen:\n" + "\n".join(self.lines()))
            self.take(0.05)
        return self.lines()

    def end(self, timeout: float = 30) -> list[str]:
        """Waits for the end of the program; returns the screen at that time."""
        deadline = time.monotonic() + timeout
        while self.code is None:
            self.take(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.take(0)
                self.code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                raise AssertionError("not ended:\n" + "\n".join(self.lines()))
        return self.lines()

    def close(self) -> None:
        if self.code is None:
            for pid in [*(process.pid for process in harness.descendants(self.pid)), self.pid]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            os.waitpid(self.pid, 0)
        os.close(self.fd)


OpenScreen = Callable[..., Screen]


@pytest.fixture
def screen(mprun: Path, tmp_path: Path) -> Iterator[OpenScreen]:
    """screen(*arguments, env={}, columns=80, rows=24) -> mprun on a terminal."""
    opened: list[Screen] = []
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "events.py").write_text(harness.EVENTS)

    def start(
        *arguments: str,
        env: Mapping[str, str] | None = None,
        columns: int = 80,
        rows: int = 24,
        argv: list[str] | None = None,
    ) -> Screen:
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "TERM": "xterm-256color",
            "XTERM_VERSION": "XTerm(379)",
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            **(env or {}),
        }
        words = argv or [str(mprun.resolve()), *arguments]
        opened.append(Screen(words, tmp_path, variables, columns, rows))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def write_job(folder: Path, **fields: Any) -> str:
    """job.json: task N waits until the file `go` has N + 1 lines."""
    spec = {
        "script": "job.py:run",
        "python": harness.MPRUN_PYTHON,
        "processes": 4,
        "chunk_size": 1,
        "inputs": {"range": 4},
        "output": {"dir": "out"},
        **fields,
    }
    (folder / "job.json").write_text(json.dumps(spec))
    return "job.json"


def go(folder: Path, tasks: int) -> None:
    """Lets the first so many tasks end."""
    text = folder / "go.new"
    text.write_text("\n" * tasks)
    text.rename(folder / "go")


def table(lines: list[str]) -> list[str]:
    """The picture: from the heading to the progress line."""
    begins = [number for number, line in enumerate(lines) if line.startswith("worker  state")]
    assert len(begins) == 1, "\n".join(lines)
    return lines[begins[0] :]


# --- the workers -------------------------------------------------------------------------------


def test_eighty_columns(screen: OpenScreen, tmp_path: Path) -> None:
    shown = screen("--view", "workers", write_job(tmp_path))
    lines = shown.until(rf"(?s)(?:^{ROW}$\n?){{4}}")
    assert lines[0] == HEADING
    assert [line.split()[0] for line in lines[1:5]] == ["0", "1", "2", "3"]
    assert sorted(line.split()[2] for line in lines[1:5]) == ["0", "1", "2", "3"]
    assert re.fullmatch(r"job +▕░+▏ +0/4 +0% +4/4 busy", lines[5])
    assert len(lines) == 6
    go(tmp_path, 4)
    end = shown.end()
    assert shown.code == 1
    assert end[0].startswith("task 0 failed: ValueError: out of luck")
    assert end[1].startswith("job: 3 ok, 1 failed in ")
    assert HEADING not in end


def test_forty_columns(screen: OpenScreen, tmp_path: Path) -> None:
    """The table has fewer columns; nothing is broken or cut off."""
    shown = screen("--view", "workers", write_job(tmp_path), columns=40)
    lines = shown.until(r"(?s)(?:^ +\d  busy +\d +\d+s +\d+%$\n?){4}")
    assert lines[0] == "worker  state      task     age    CPU"
    assert len(lines) == 6
    assert max(map(len, lines)) < 40
    go(tmp_path, 4)
    shown.end()


def test_more_workers_than_rows(screen: OpenScreen, tmp_path: Path) -> None:
    job = write_job(tmp_path, processes=12, inputs={"range": 12})
    shown = screen("--view", "workers", job, rows=10)
    lines = shown.until(r"^and 6 more$")
    assert len(lines) == 9, "one row is left for what is above"
    assert lines[0] == HEADING
    go(tmp_path, 12)
    shown.end()


def test_the_summary_is_one_line(screen: OpenScreen, tmp_path: Path) -> None:
    """Failed, retried, and the contents of the results so far."""
    shown = screen(write_job(tmp_path, retries={"on_error": 1}), columns=120)
    shown.until("4/4 busy")
    go(tmp_path, 3)
    lines = shown.until(r"3/4 +75% +1 failed +1 retried .* 2\.\d KiB +1/4 busy")
    assert HEADING not in lines
    go(tmp_path, 4)
    shown.end()


# --- messages, resizing, keys ------------------------------------------------------------------


def test_messages_stay_above(screen: OpenScreen, tmp_path: Path) -> None:
    shown = screen("-v", "--view", "workers", write_job(tmp_path))
    shown.until(rf"(?s)(?:^{ROW}$\n?){{4}}")
    go(tmp_path, 1)
    lines = shown.until(r"^task 0 failed")
    above = lines[: lines.index(HEADING)]
    assert len([line for line in above if re.match(r"worker \d started", line)]) == 4
    assert above[-1].startswith("task 0 failed: ValueError: out of luck")
    assert len(table(lines)) == 6
    go(tmp_path, 4)
    end = shown.end()
    assert [line for line in end if line.startswith("task 0 failed")] == [above[-1]]
    assert not [line for line in end if "busy" in line]


@pytest.mark.parametrize("size", [(40, 24), (80, 5), (30, 8), (120, 40)], ids=str)
def test_resize(screen: OpenScreen, tmp_path: Path, size: tuple[int, int]) -> None:
    """No line of an older size is left, and messages stay."""
    shown = screen("--view", "workers", write_job(tmp_path))
    shown.until(rf"(?s)(?:^{ROW}$\n?){{4}}")
    go(tmp_path, 1)
    shown.until(r"^task 0 failed")
    drawn = len(shown.raw)
    shown.resize(*size)

    def fits() -> bool:
        """At least one picture was drawn since; the first may have been on its way in the older size."""
        shown.take(0.02)
        last = [line for line in shown.lines() if "0/4" in line or "1/4" in line]
        return shown.raw[drawn:].count(b"\r") > 5 and len(last) == 1 and len(last[0]) < size[0]

    harness.wait_until(fits, what="pictures of the new size")
    lines = shown.lines()
    rows = table(lines)
    assert len([line for line in lines if "0/4" in line or "1/4" in line]) == 1
    assert len(rows) == min(6, size[1] - 1)
    assert max(map(len, rows)) < size[0]
    go(tmp_path, 4)
    end = shown.end()
    assert not [line for line in end if "busy" in line or line.startswith("worker  ")]


def test_suspended_and_continued(screen: OpenScreen, tmp_path: Path) -> None:
    """Under a shell: Ctrl-Z leaves a clean prompt, fg goes on below it, bg draws nothing."""
    shown = screen(argv=["/bin/bash", "--norc", "--noprofile", "-i"], env={"PS1": "ready> "})
    shown.until("^ready>")
    shown.type(f"{harness.MPRUN_BIN} --view workers {write_job(tmp_path)}\n")
    shown.until(rf"(?s)(?:^{ROW}$\n?){{4}}")
    shown.type("\x1a")
    lines = shown.until(r"(?s)Stopped.*^ready>$")
    assert not [line for line in lines if "busy" in line], "\n".join(lines)
    shown.type("bg\n")
    shown.until(r"(?s)^ready> bg$.*^ready>$")
    go(tmp_path, 1)
    lines = shown.until("^(ready> )?task 0 failed")
    assert not [line for line in lines if "busy" in line], "\n".join(lines)
    shown.type("fg\n")
    lines = shown.until(rf"(?s)^(ready> )?fg$.*^{HEADING}$.*3/4 busy")
    assert len(table(lines)) == 6
    go(tmp_path, 4)
    shown.until(r"(?s)exit code 1.*^ready>$")
    shown.type("exit\n")
    end = shown.end()
    assert not [line for line in end if "busy" in line], "\n".join(end)


# --- terminals of all kinds --------------------------------------------------------------------


def test_no_color(screen: OpenScreen, tmp_path: Path) -> None:
    shown = screen("--view", "workers", write_job(tmp_path), env={"NO_COLOR": "1"})
    shown.until(rf"(?s)(?:^{ROW}$\n?){{4}}")
    go(tmp_path, 4)
    shown.end()
    assert not re.search(rb"\x1b\[[0-9;]*m", shown.raw)


def test_a_locale_without_utf8(screen: OpenScreen, tmp_path: Path) -> None:
    """ASCII only, whatever a task prints."""
    (tmp_path / "large.py").write_text(
        "from events import wait_for\n\n\ndef run(number):\n"
        "    wait_for('go', seconds=60)\n    raise ValueError('größe')\n",
        encoding="utf-8",
    )
    job = write_job(tmp_path, script="large.py:run")
    shown = screen("--view", "workers", job, env={"LC_ALL": "C"})
    shown.until(rf"(?s)(?:^{ROW}$\n?){{4}}job +\[>")
    go(tmp_path, 1)
    shown.until(r"^task \d failed: ValueError: gr\?\?e")
    shown.end()
    assert shown.raw.isascii()


def test_a_dumb_terminal(screen: OpenScreen, tmp_path: Path) -> None:
    shown = screen("--view", "workers", write_job(tmp_path), env={"TERM": "dumb"})
    harness.wait_until(lambda: len(harness.marks(tmp_path / "begun")) == 4, what="four tasks")
    go(tmp_path, 4)
    shown.end()
    assert b"\x1b" not in shown.raw
    assert b"\r" not in shown.raw.replace(b"\r\n", b"\n")
    assert HEADING not in shown.lines()


def test_a_pipe(start_job: StartCommand, tmp_path: Path) -> None:
    files = {"job.py": JOB, "events.py": harness.EVENTS}
    write_job(tmp_path)
    running = start_job(tmp_path / "job.json", "--view", "workers", scripts=files)
    harness.wait_until(lambda: len(harness.marks(tmp_path / "begun")) == 4, what="four tasks")
    go(tmp_path, 4)
    run = running.wait().check(1)
    assert run.stderr.splitlines()[0] == "job: started, 4 tasks, 4 processes"
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f]", run.stderr) is None
    assert "state" not in run.stderr


def test_tmux(mprun: Path, tmp_path: Path) -> None:
    """It rewraps lines when it gets narrower; lines that then leave the screen are out of reach."""
    tmux = [shutil.which("tmux") or "", "-f", os.devnull, "-L", f"mprun-{tmp_path.name}"]
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "events.py").write_text(harness.EVENTS)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8", "TERM": "xterm"}

    def call(*words: str) -> str:
        return subprocess.run(
            [*tmux, *words], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    def until(pattern: str) -> list[str]:
        def found() -> str | None:
            text = call("capture-pane", "-p").rstrip("\n")
            return text if re.search(pattern, text, re.MULTILINE) else None

        return harness.wait_until(found, timeout=20, what=f"{pattern!r} in tmux").split("\n")

    command = f"{mprun.resolve()} --view workers {write_job(tmp_path)}; cat"
    call("new-session", "-d", "-x", "80", "-y", "24", command)
    try:
        until(rf"(?s)(?:^{ROW}$\n?){{4}}")
        go(tmp_path, 1)
        until(r"(?s)^task 0 failed.*3/4 busy")
        call("resize-window", "-x", "38", "-y", "24")
        lines = until(r"^worker  state      task     age$")
        assert len(table(lines)) == 6, "\n".join(lines)
        go(tmp_path, 4)
        lines = until("^exit code 1")
        assert not [line for line in lines if "busy" in line or line.startswith("worker  ")]
        kept = call("capture-pane", "-p", "-S", "-100")
        assert kept.count("task 0 failed: ValueError: out of luck") == 1
    finally:
        call("kill-server")


# --- silent phases -----------------------------------------------------------------------------


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_a_start_shows_its_step(
    screen: OpenScreen, tmp_path: Path, start_method: str
) -> None:
    (tmp_path / "slow.py").write_text(
        "from events import wait_for\n"
        "wait_for('imported', seconds=60)\n"
        "from job import run, setup\n"
    )
    job = write_job(
        tmp_path, script="slow.py:run", setup="setup", start_method=start_method, processes=1
    )
    shown = screen(job)
    shown.until(r"0/4 .*starting: importing slow\.py")
    (tmp_path / "imported").write_text("\n")
    shown.until(r"0/4 .*starting: setup\(\) [2-9]s")
    (tmp_path / "warm").write_text("\n")
    shown.until("1/1 busy")
    go(tmp_path, 4)
    shown.end()


def test_the_end_shows_what_it_waits_for(screen: OpenScreen, tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(
        "import atexit\nfrom events import wait_for\n\ndef run(number):\n"
        "    atexit.register(wait_for, 'go', 1, 60)\n    return number\n"
    )
    shown = screen(write_job(tmp_path, script="late.py:run", processes=1))
    shown.until(r"4/4 +100% .*finishing: waiting for 1 worker to end")
    go(tmp_path, 1)
    shown.end()
    assert shown.code == 0


def test_inputs_are_waited_for(screen: OpenScreen, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "inputs")
    job = write_job(tmp_path, inputs={"lines": "inputs"}, script="job.py:give", processes=1)
    (tmp_path / "job.py").write_text("def give(line):\n    return line\n")
    shown = screen(job)
    with open(tmp_path / "inputs", "w", encoding="utf-8") as pipe:
        shown.until("waiting for the first input")
        pipe.write("one\n")
        pipe.flush()
        shown.until("1 done .*waiting for input")
    shown.end()
    assert shown.code == 0
