"""Waits for a result of a pool for a limited time."""

import multiprocessing
import sys

import stuck_child

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        try:
            pool.apply_async(stuck_child.work).get(float(sys.argv[1]))  # copes here
        except multiprocessing.TimeoutError:
            pool.terminate()
    print("done", flush=True)
