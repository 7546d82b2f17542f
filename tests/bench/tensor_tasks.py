"""The tasks of tests/bench/tensors.py, for mprun and its peers alike: an array in, an array out, both.

Each copies what it is given into memory of its own, so that it has been read.
"""

from __future__ import annotations

import os

import numpy

BYTES = "BENCH_BYTES"  # the variable with the size of an array

_own = numpy.ones(int(os.environ.get(BYTES, "0")), numpy.uint8)


def take(row: numpy.ndarray) -> None:
    """Handed out: reads what it is given."""
    numpy.copyto(_own, row)


def give(_number: int) -> numpy.ndarray:
    """Gathered: returns memory that it has used before."""
    return _own.view()  # one of its own: pickle would send the same object only once


def trip(row: numpy.ndarray) -> numpy.ndarray:
    """Both."""
    numpy.copyto(_own, row)
    return _own.view()  # one of its own: pickle would send the same object only once
