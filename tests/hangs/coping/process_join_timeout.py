"""Joins a process for a limited time, and then terminates it."""

import multiprocessing
import sys

import stuck_child

if __name__ == "__main__":
    process = multiprocessing.get_context("fork").Process(target=stuck_child.work)
    process.start()
    process.join(float(sys.argv[1]))  # copes here
    process.terminate()
    process.join()
    print("done", flush=True)
