"""A Pool is joined while one of its tasks sleeps; the other workers are idle, one of them was replaced."""

import multiprocessing
import sys
import time

if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    pool = multiprocessing.get_context("fork").Pool(3, maxtasksperchild=1)
    result = pool.apply_async(time.sleep, (seconds,))
    assert pool.apply(abs, (-1,)) == 1
    pool.close()
    pool.join()
    assert result.successful()
    print("done", flush=True)
