"""Joins a process that joins a stuck one, perhaps beside a thread that does nothing about it; no join has a limit."""

import multiprocessing
import sys
import threading
import time

import stuck_child

context = multiprocessing.get_context("fork")


def look_around(seconds: float) -> None:
    while True:
        time.sleep(seconds)


def middle() -> None:
    process = context.Process(target=stuck_child.work)
    process.start()
    if sys.argv[2] != "alone":
        pause = 0.2 if sys.argv[2] == "busy" else 1000
        threading.Thread(target=look_around, args=(pause,), daemon=True).start()
    process.join()


if __name__ == "__main__":
    process = context.Process(target=middle)
    process.start()
    process.join()  # hangs here
    print("done", flush=True)
