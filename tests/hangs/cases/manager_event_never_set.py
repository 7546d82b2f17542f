"""A worker waits for an event of a manager that is never set, and main for the worker."""

import multiprocessing
import multiprocessing.managers
import threading


def work(event: threading.Event) -> None:
    event.wait()  # blocks here


if __name__ == "__main__":
    with multiprocessing.Manager() as manager:
        event = manager.Event()
        worker = multiprocessing.Process(target=work, args=(event,))
        worker.start()
        worker.join()  # hangs here
    print("done")
