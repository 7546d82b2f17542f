"""The initializer of a pool fails until what it needs is there; workers that die are replaced until then."""

import multiprocessing
import os
import sys
import time


def prepare(ready_at: float) -> None:
    if time.monotonic() < ready_at:
        os._exit(1)


if __name__ == "__main__":
    ready_at = time.monotonic() + float(sys.argv[1])
    with multiprocessing.get_context("fork").Pool(2, prepare, (ready_at,)) as pool:
        # The size of chunks is given, or map() would divide by the number of workers, which may be 0.
        pool.map(abs, range(4), chunksize=1)
    print("done")
