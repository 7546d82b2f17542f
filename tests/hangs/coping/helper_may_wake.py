"""Waits for an event that its helper, which polls, may set, beside a child that is stuck."""

import multiprocessing
import sys
import threading
import time

import stuck_child

event = threading.Event()


def look_around(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.1)
    event.set()


if __name__ == "__main__":
    process = multiprocessing.get_context("fork").Process(target=stuck_child.work)
    process.start()
    threading.Thread(target=look_around, args=(float(sys.argv[1]),), daemon=True).start()
    event.wait()  # copes here
    process.kill()
    process.join()
    print("done", flush=True)
