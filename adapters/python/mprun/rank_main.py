"""A rank: runs the script once as __main__, with torchrun's variables in its environment."""
from __future__ import annotations

import os
import struct
import sys
import threading
import time
import types

import mprun
from mprun import _mprun, task
from mprun.protocol import READY, RESULT, Channels, Start, StartFailure
from mprun.tensor_files import TensorFiles
from mprun.user_code import exit_code_of, user_traceback

TYPE_CHECKING = False  # as typing has it, whose import takes a millisecond or two
if TYPE_CHECKING:
    from typing import Any


def send_result(fds: Channels, encoded: bytes | tuple[bytes, bytes], failed: bool) -> None:
    """Writes a RESULT frame: position 0, as a rank is one task. A process that the rank has forked writes none."""
    if not fds.are_ours():
        return
    claims, payload = encoded if isinstance(encoded, tuple) else (b"", encoded)
    head = struct.pack("=IIqqII", 0, failed, time.time_ns(), 0, len(claims), 0)
    _mprun.write_frame(fds.results, RESULT, head + claims + payload)


def run(start: Start, fds: Channels) -> int:
    """Executes the script; returns the exit code Python would have given it."""

    files = TensorFiles(**start.tensors)
    number = int(os.environ["MPRUN_TASK"])
    turn = threading.RLock()  # a signal handler may give a result, too

    def deliver(value: Any) -> None:
        if not fds.are_ours():
            return
        with turn:  # the result that is sent last is the one whose tensors were written last
            send_result(fds, files.encode(value, number, None), failed=False)

    mprun._deliver = deliver
    if start.seed is not None:
        task.plant_seed(task.mix(start.seed, start.slot))
    try:
        with open(start.script, "rb") as file:
            source = file.read()
    except OSError as error:
        raise StartFailure("import", f"cannot read {start.script}: {error}", error) from error
    main = types.ModuleType("__main__")
    main.__file__ = start.script
    main.__builtins__ = __builtins__  # type: ignore[attr-defined]
    sys.modules["__main__"] = main
    _mprun.write_frame(fds.results, READY, b"")
    try:
        exec(compile(source, start.script, "exec"), vars(main))
    except SystemExit as error:
        return exit_code_of(error)
    except BaseException as error:
        print(user_traceback(error), file=sys.stderr, end="")
        send_result(fds, task.describe(error), failed=True)
        return 1
    return 0
