"""What mprun offers a program: a task function, a rank, or any Python below it. A script runs without mprun, too: it is
then rank 0 of 1, its results go nowhere, and its deadlines are not watched. And what starts jobs: map, run, Executor."""
from __future__ import annotations

import os
import sys

from mprun.shared_tensors import SharedTensors

TYPE_CHECKING = False  # as typing has it, whose import takes a millisecond or two
if TYPE_CHECKING:
    from typing import Any, Callable


def _check_extension() -> None:
    """Raises ImportError in a free-threaded Python for which this mprun has no extension; the other one would crash it."""
    from importlib.machinery import EXTENSION_SUFFIXES

    suffix = EXTENSION_SUFFIXES[0]
    if not os.path.exists(os.path.join(os.path.dirname(__file__), "_mprun" + suffix)):
        raise ImportError(
            f"this mprun has no extension for free-threaded Python {sys.version.split()[0]} (_mprun{suffix}): build it with "
            f"-DMPRUN_FREE_THREADED_PYTHONS={sys.executable}, or use a Python with a GIL"
        )


if sys.version_info >= (3, 11):  # that of workers; an older Python may start jobs of another one
    if "t" in sys.abiflags:
        _check_extension()
    from mprun._mprun import deadline

__all__ = ["deadline", "rank", "world_size", "result", "shared", "counter", "lock", "barrier", "queue"]

#: The tensors that the job's spec names in its field "shared", by name.
shared = SharedTensors()

# Loaded on first use: `import mprun` loads only the extension.
# `dict` and `map` are not in __all__: they would hide Python's own.
_SYNC = {"counter": "Counter", "lock": "Lock", "barrier": "Barrier", "queue": "Queue", "dict": "Dict"}
# What starts work, by module: a task loads none of it.
_STARTS = {
    **{name: "jobs" for name in ("map", "run", "Run")},
    "Executor": "executor",
    "register_joblib": "joblib_backend",
    **{
        name: "errors"
        for name in ("JobError", "SpecError", "TaskError", "WorkerDied", "MemoryLimit", "Timeout", "Hung", "RemoteTraceback")
    },
}

# Set by mprun.rank_main in a rank process: sends the value to the supervisor.
_deliver: Callable[[Any], None] | None = None


def rank() -> int:
    """The number of this process: its rank, or its worker slot; 0 outside of mprun."""
    return int(os.environ.get("RANK") or os.environ.get("MPRUN_WORKER") or 0)


def world_size() -> int:
    """How many ranks or workers the job has; 1 outside of mprun."""
    return int(os.environ.get("WORLD_SIZE") or os.environ.get("MPRUN_WORKERS") or 1)


def result(value: Any) -> None:
    """Makes `value` this rank's result; of several calls the last one counts. Any thread may call it; in a process
    that the rank has started it does nothing.

    Raises TypeError if the value cannot be kept: it holds something that is neither JSON nor a tensor.
    """
    if _deliver is not None:
        _deliver(value)


def __getattr__(name: str) -> Any:
    if name in _SYNC:
        from mprun import sync

        return globals().setdefault(name, getattr(sync, _SYNC[name]))
    if name in _STARTS:
        import importlib

        return globals().setdefault(name, getattr(importlib.import_module(f"mprun.{_STARTS[name]}"), name))
    if name == "deadline":
        raise ImportError("mprun.deadline needs Python 3.11 or later; this is %d.%d" % sys.version_info[:2])
    raise AttributeError(f"module 'mprun' has no attribute {name!r}")
