"""A child idles in a loop until its parent ends it, who sleeps or computes meanwhile."""

import multiprocessing
import sys
import time

stopped = False


def idle() -> None:
    while not stopped:
        time.sleep(0.3)


if __name__ == "__main__":
    seconds = float(sys.argv[1])
    child = multiprocessing.get_context("fork").Process(target=idle)
    child.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if "computes" in sys.argv:
            sum(range(10**6))
        else:
            time.sleep(seconds)
    child.terminate()
    child.join()
    print("done")
