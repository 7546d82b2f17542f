"""What a user's code leaves: tracebacks, exit codes, streams."""
from __future__ import annotations

import os
import sys
import traceback
from typing import Any


def user_traceback(error: BaseException) -> str:
    """The formatted traceback without mprun's own and the import system's frames."""
    ours = os.path.dirname(os.path.realpath(__file__))
    report = traceback.TracebackException.from_exception(error)
    hidden = (ours, "<frozen importlib", "<frozen runpy")
    report.stack[:] = [frame for frame in report.stack if not frame.filename.startswith(hidden)]
    return "".join(report.format())


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
