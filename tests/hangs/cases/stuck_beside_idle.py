"""A child that handles a signal takes a lock twice. Another one is idle, and a third one works."""

import multiprocessing
import signal
import subprocess
import sys
import threading
from multiprocessing.synchronize import Lock

WORK = "while True: pass"


def take_twice(lock: Lock) -> None:
    signal.signal(signal.SIGUSR1, lambda number, frame: print("alive", flush=True))
    with lock, lock:
        print("done", flush=True)


def be_idle() -> None:
    threading.Event().wait()


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    context.Process(target=be_idle, daemon=True).start()
    with subprocess.Popen([sys.executable, "-c", WORK]):
        child = context.Process(target=take_twice, args=(context.Lock(),))
        child.start()
        child.join()  # hangs here
