"""A parent with a handler for SIGTERM waits for a child that takes a lock twice, while a program it started works on."""

import multiprocessing
import signal
import subprocess
import sys
from multiprocessing.synchronize import Lock

WORK = "while True: pass"


def take_twice(lock: Lock) -> None:
    with lock, lock:
        print("done", flush=True)


def end(number: int, frame: object) -> None:
    sys.exit(1)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end)
    with subprocess.Popen([sys.executable, "-c", WORK]):
        context = multiprocessing.get_context("fork")
        child = context.Process(target=take_twice, args=(context.Lock(),))
        child.start()
        child.join()  # hangs here
