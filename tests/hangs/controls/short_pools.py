"""Many short Pools whose workers end after each task, and are replaced."""

import multiprocessing
import sys
import time

if __name__ == "__main__":
    end = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else 30)
    while time.monotonic() < end:
        with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
            assert pool.map(abs, [-1, -2, -3, -4], chunksize=1) == [1, 2, 3, 4]
            pool.close()
            pool.join()
    print("done", flush=True)
