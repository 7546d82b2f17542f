"""The task of pages.py: reads rows of the shared table at random, twice."""

from __future__ import annotations

import os
import time

import numpy

import mprun

ROWS = 1_000_000


def gather(workers: int) -> list[float]:
    """Seconds for the rows that no process has touched yet, and for the same again."""
    table = mprun.shared["table"]
    rows = numpy.random.default_rng(os.getpid()).integers(0, len(table), ROWS)
    mprun.barrier("all", workers).wait()
    passes = []
    for _ in range(2):
        began = time.perf_counter()
        assert table[rows].sum() == ROWS * table.shape[1]
        passes.append(time.perf_counter() - began)
    return passes
