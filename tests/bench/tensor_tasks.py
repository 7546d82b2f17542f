"""The tasks of tests/bench/tensors.py, for mprun and its peers alike: an array in, an array out, both.

Each copies its input into its own memory, so that every byte is read.
"""

from __future__ import annotations

import os

import numpy

BYTES = "BENCH_BYTES"  # the variable with the size of an array

_own = numpy.ones(int(os.environ.get(BYTES, "0")), numpy.uint8)


def take(row: numpy.ndarray) -> None:
    """Handed out: reads its input."""
    numpy.copyto(_own, row)


def give(_number: int) -> numpy.ndarray:
    """Gathered: returns memory that it has used before."""
    return _own.view()  # a new object: pickle would send the same object only once


def trip(row: numpy.ndarray) -> numpy.ndarray:
    """Both."""
    numpy.copyto(_own, row)
    return _own.view()  # a new object: pickle would send the same object only once
