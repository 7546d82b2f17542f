"""What a program may ask of mprun: a task function, a rank, or any Python below it. A script runs without mprun, too:
it then is rank 0 of 1, its results go nowhere, and nobody watches its deadlines."""
from __future__ import annotations

import os
from typing import Any, Callable

from mprun._mprun import deadline
from mprun.shared_tensors import SharedTensors

__all__ = ["deadline", "rank", "world_size", "result", "shared"]

#: The tensors that the job's spec names in its field "shared", by name.
shared = SharedTensors()

# Set by mprun.rank in a rank process: takes the value to the supervisor.
_deliver: Callable[[Any], None] | None = None


def rank() -> int:
    """The number of this process: its rank, or its worker slot; 0 outside of mprun."""
    return int(os.environ.get("RANK") or os.environ.get("MPRUN_WORKER") or 0)


def world_size() -> int:
    """How many ranks or workers the job has; 1 outside of mprun."""
    return int(os.environ.get("WORLD_SIZE") or os.environ.get("MPRUN_WORKERS") or 1)


def result(value: Any) -> None:
    """Makes `value` this rank's result; of several calls the last one counts.

    Raises TypeError where the value cannot be kept: neither JSON nor tensors are in it.
    """
    if _deliver is not None:
        _deliver(value)
