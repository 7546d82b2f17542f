"""Peer of tests/bench/memory.py: `pool_memory.py METHOD WORKERS`, a Pool that holds the array."""

from __future__ import annotations

import multiprocessing
import sys

import array_task


def main() -> None:
    """Runs one task on each worker."""
    method, workers = sys.argv[1], int(sys.argv[2])
    context = multiprocessing.get_context(method)
    if method == "fork":
        array_task.setup()
    initializer = None if method == "fork" else array_task.setup
    with context.Pool(workers, initializer) as pool:
        totals = pool.map(array_task.hold, range(workers), chunksize=1)
    assert len(set(totals)) == 1


if __name__ == "__main__":
    main()
