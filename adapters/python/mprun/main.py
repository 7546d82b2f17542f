"""The life of a process that mprun started: it reads the START frame, becomes host, worker or rank, and ends."""
from __future__ import annotations

import atexit
import json
import os
import sys

from mprun import _mprun
from mprun.protocol import EXIT_START_FAILED, START_FAILED, Channels, Start, StartFailure
from mprun.user_code import flush_streams, user_traceback

TYPE_CHECKING = False  # as typing has it, whose import takes a millisecond or two
if TYPE_CHECKING:
    from typing import NoReturn

#: Of set_mempolicy(2).
MPOL_DEFAULT, MPOL_BIND, MPOL_INTERLEAVE = 0, 2, 3


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

            if start.interleave:
                set_memory_policy(MPOL_INTERLEAVE, start.interleave)
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
        bind(start)
        if start.role == "rank":
            from mprun import rank_main

            return rank_main.run(start, fds)
        from mprun import worker

        return worker.run(start, fds)
    except StartFailure as failure:
        return report_failure(fds, failure)


def bind(start: Start) -> None:
    """Runs this process, and the threads and processes that it starts, on its processors, with memory of its nodes."""
    if start.cpus:
        try:
            os.sched_setaffinity(0, start.cpus)
        except OSError as error:
            wanted = ", ".join(map(str, start.cpus))
            raise StartFailure("binding", f"cannot run on the processors {wanted}: {error.strerror}") from None
    if start.nodes:
        set_memory_policy(MPOL_BIND, start.nodes)
    elif start.interleave:  # by the host, for what it loaded
        set_memory_policy(MPOL_DEFAULT, [])


def set_memory_policy(policy: int, nodes: list[int]) -> None:
    """Where the memory of this process, and of the threads and processes that it starts, will come from."""
    try:
        _mprun.set_memory_policy(policy, nodes)
    except OSError as error:
        wanted = ", ".join(map(str, nodes)) or "any"
        raise StartFailure("memory policy", f"cannot use the memory nodes {wanted}: {error.strerror}") from None


def prepare_path(script: str, args: list[str]) -> None:
    """Gives the script the sys.path and sys.argv it would have if Python had run it."""
    ours = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    if not sys.flags.safe_path:
        sys.path[:] = [entry for entry in sys.path if entry != ours]
        if script:
            sys.path.insert(0, os.path.dirname(script) or ".")
    sys.path.append(ours)  # `import mprun` works in the processes the script starts, and shadows nothing
    sys.argv[:] = [script, *args]


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


def end_forked(code: int) -> NoReturn:
    """Ends a forked process: its own threads, exit handlers and buffers, but nothing inherited.

    Tearing the interpreter down would run destructors of libraries whose threads were lost in the fork.
    """
    try:
        shutdown = getattr(sys.modules.get("threading"), "_shutdown", None)  # a script may have a module of that name
        if shutdown is not None:
            shutdown()
        atexit._run_exitfuncs()
    except BaseException:
        sys.__excepthook__(*sys.exc_info())
        code = code or 1
    flush_streams()
    os._exit(code)
