"""Joins its child for a limited time, twice, and then without a limit: is stuck itself from then on."""

import multiprocessing
import sys

import stuck_child

if __name__ == "__main__":
    process = multiprocessing.get_context("fork").Process(target=stuck_child.work)
    process.start()
    process.join(float(sys.argv[1]))
    process.join(float(sys.argv[1]))
    process.join()  # hangs here
    print("done", flush=True)
