"""A Pool has nothing to do while main sleeps; then it has."""

import multiprocessing
import sys
import time

if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]
        time.sleep(seconds)
        assert pool.map(abs, [-3, -4]) == [3, 4]
    print("done", flush=True)
