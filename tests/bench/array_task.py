"""The task of tests/bench/memory.py: eight workers read one large array and then hold still."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import numpy

BYTES = "BENCH_BYTES"  # the variable with the size of the array
FOLDER = "BENCH_FOLDER"  # the variable that names a directory of this run
GATE = "gate"  # the file in it that stays locked while tasks must hold still

array = numpy.empty(0)


def setup() -> None:
    """Makes the array, every page of it."""
    global array
    array = numpy.ones(int(os.environ[BYTES]) // 8)


def hold(number: int) -> float:
    """Reads the whole array, says so, and waits for the gate to be opened."""
    total = float(array.sum())
    folder = Path(os.environ[FOLDER])
    with open(folder / GATE, encoding="ascii") as gate:
        (folder / f"task-{number}").touch()
        fcntl.flock(gate, fcntl.LOCK_SH)
    return total
