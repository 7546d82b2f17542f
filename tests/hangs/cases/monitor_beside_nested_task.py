"""A task of an executor with one worker waits for another task of it; a thread shows the load until it is stopped."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

stopped = threading.Event()
executor = ThreadPoolExecutor(1)


def monitor() -> None:
    while not stopped.wait(0.5):
        sys.stderr.write(f"\rload {os.getloadavg()[0]:.1f}")
        sys.stderr.flush()


def outer() -> int:
    return executor.submit(int).result()  # hangs here


if __name__ == "__main__":
    threading.Thread(target=monitor, daemon=True).start()
    print("done", executor.submit(outer).result())
