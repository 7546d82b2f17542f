"""A child that computes without any sign of it, joined all the while."""

import multiprocessing
import sys
import time


def compute(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    process = multiprocessing.get_context("fork").Process(target=compute, args=(seconds,))
    process.start()
    process.join()
    print("done", flush=True)
