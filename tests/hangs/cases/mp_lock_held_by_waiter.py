"""The holder of a lock of multiprocessing waits for a task that needs the lock."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

context = multiprocessing.get_context("fork")
lock = context.Lock()


def work() -> None:
    with lock:  # blocks here
        pass


if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=context) as executor, lock:
        executor.submit(work).result()  # hangs here
    print("done")
