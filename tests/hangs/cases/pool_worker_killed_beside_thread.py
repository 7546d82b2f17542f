"""A Pool's worker is killed in its task, while a thread of the program goes on to report that all is well."""

import multiprocessing
import os
import signal
import threading
import time


def task(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def report() -> None:
    while True:
        time.sleep(0.2)
        print("all is well", flush=True)


def main() -> None:
    threading.Thread(target=report, daemon=True).start()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(task, range(8), chunksize=1)  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
