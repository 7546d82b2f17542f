"""The life of a process that mprun started: it reads the START frame, becomes host, worker or rank, and ends."""
from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import traceback
from types import SimpleNamespace
from typing import Any, NoReturn

from mprun import _mprun

# Frame types of core/wire/protocol.h.
START, TASKS, STOP, FORK, REAP = 1, 2, 3, 4, 5
READY, RESULT, START_FAILED, FORKED, EXITED, STAGE = 11, 12, 13, 14, 15, 16

#: The exit code of a worker whose start failed: the reason went to the supervisor as a frame.
EXIT_START_FAILED = 3
#: The exit code of a worker that can no longer talk to the supervisor.
EXIT_CHANNEL_LOST = 86


class StartFailure(Exception):
    """A start that the user's code or spec made impossible; the user sees the stage and the traceback."""

    def __init__(self, stage: str, message: str, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.stage, self.message, self.cause = stage, message, cause


class Start(SimpleNamespace):
    """The START frame: what this process is and what it loads. Written by core/launch/python_process.cc."""

    role: str
    slot: int
    script: str
    function: str
    call: str
    setup: str
    worker_setup: str
    preload: list[str]
    args: list[str]
    seed: int | None
    arrays: dict[str, Any] | None
    tensors: dict[str, Any]
    forked: bool


class Channels:
    """The inherited descriptors: frames in, frames out, the claim table."""

    def __init__(self, channel: int, results: int, claims: int) -> None:
        self.channel, self.results, self.claims = channel, results, claims
        self.owner = os.getpid()  # a process that it forks inherits them, and is no rank or worker

    def are_ours(self) -> bool:
        """Whether this process is the one that they connect with mprun."""
        return os.getpid() == self.owner


def run(channel: int, results: int, claims: int) -> int:
    """Serves as what the supervisor asks for; returns the exit code of a process that may end normally."""
    frame = _mprun.read_frame(channel)
    if frame is None:
        return 0
    start = Start(**json.loads(frame[1]))
    fds = Channels(channel, results, claims)
    for fd in (channel, results, claims) if start.function else (channel, results):  # ranks have none
        os.set_inheritable(fd, False)
    prepare_path(start.script, start.args)
    try:
        if start.role == "host":
            from mprun import host

            host.run(start, fds, become=lambda child, its_fds: end_forked(serve(child, its_fds)))
            return 0
        return serve(start, fds)
    except StartFailure as failure:
        return report_failure(fds, failure)


def serve(start: Start, fds: Channels) -> int:
    """Runs as worker or rank to the end; returns the exit code."""
    os.set_blocking(fds.results, False)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(line_buffering=True, errors="backslashreplace")
    try:
        if start.role == "rank":
            from mprun import rank_main

            return rank_main.run(start, fds)
        from mprun import worker

        return worker.run(start, fds)
    except StartFailure as failure:
        return report_failure(fds, failure)


def prepare_path(script: str, args: list[str]) -> None:
    """Gives the script the sys.path and sys.argv it would have if Python had run it."""
    ours = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    if not sys.flags.safe_path:
        sys.path[:] = [entry for entry in sys.path if entry != ours]
        if script:
            sys.path.insert(0, os.path.dirname(script) or ".")
    sys.path.append(ours)  # `import mprun` works in the processes the script starts, and shadows nothing
    sys.argv[:] = [script, *args]


def report_stage(fds: Channels, text: str) -> None:
    """Reports to the supervisor what this process does before it can serve, which may take long."""
    _mprun.write_frame(fds.results, STAGE, text.encode(errors="backslashreplace"))


def report_failure(fds: Channels, failure: StartFailure) -> int:
    """Reports to the supervisor why this process cannot serve."""
    cause = failure.cause
    trace = None
    if cause is not None:
        trace = user_traceback(cause)
        print(trace, file=sys.stderr, end="")
    else:
        print(failure.message, file=sys.stderr)
    report = {
        "stage": failure.stage,
        "type": type(cause).__name__ if cause is not None else "",
        "message": failure.message,
        "traceback": trace,
        "python": sys.executable,
    }
    _mprun.write_frame(fds.results, START_FAILED, json.dumps(report).encode())
    return EXIT_START_FAILED


def user_traceback(error: BaseException) -> str:
    """The formatted traceback without mprun's own and the import system's frames."""
    ours = os.path.dirname(os.path.realpath(__file__))
    report = traceback.TracebackException.from_exception(error)
    hidden = (ours, "<frozen importlib", "<frozen runpy")
    report.stack[:] = [frame for frame in report.stack if not frame.filename.startswith(hidden)]
    return "".join(report.format())


def end_forked(code: int) -> NoReturn:
    """Ends a forked process: its own threads, exit handlers and buffers, but nothing inherited.

    Tearing the interpreter down would run destructors of libraries whose threads were lost in the fork.
    """
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
        code = code or 1
    flush_streams()
    os._exit(code)


def flush_streams() -> None:
    """Flushes what the script printed, whatever it did to its streams."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass


def exit_code_of(error: SystemExit) -> int:
    """The exit code Python would give for sys.exit(...), with its message printed as Python does."""
    code: Any = error.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1
