"""What a user's code leaves: tracebacks, exit codes, streams."""
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as typing has it, whose import takes a millisecond or two
if TYPE_CHECKING:
    from typing import Any


def user_traceback(error: BaseException) -> str:
    """The formatted traceback without mprun's own and the import system's frames."""
    hidden = (os.path.dirname(os.path.realpath(__file__)), "<frozen importlib", "<frozen runpy")
    try:
        # Not imported before: it takes milliseconds, and a script may have modules that are called token or textwrap.
        from traceback import TracebackException

        report = TracebackException.from_exception(error)
        report.stack[:] = [frame for frame in report.stack if not frame.filename.startswith(hidden)]
        return "".join(report.format())
    except Exception:  # it got such a module of the script
        return plain_traceback(error, hidden)


def plain_traceback(error: BaseException, hidden: tuple[str, ...]) -> str:
    """The frames of an exception, without their source, as Python itself can name them."""
    lines = ["Traceback (most recent call last):"]
    at = error.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        if not code.co_filename.startswith(hidden):
            lines.append(f'  File "{code.co_filename}", line {at.tb_lineno}, in {code.co_name}')
        at = at.tb_next
    return "\n".join([*lines, f"{type(error).__name__}: {error}", ""])


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
