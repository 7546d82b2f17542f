"""Threads of a pool compute while main waits for their results."""

import sys
import time
from multiprocessing.pool import ThreadPool


def compute(end: float) -> int:
    count = 1  # at least, if the machine starts the thread late
    while time.monotonic() < end:
        count += 1
    return count


if __name__ == "__main__":
    end = time.monotonic() + float(sys.argv[1])
    with ThreadPool(2) as pool:
        assert all(pool.map(compute, [end, end]))
    print("done", flush=True)
