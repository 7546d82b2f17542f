"""ProcessPoolExecutor.shutdown waits for a task that waits for an event that is never set (openevolve#469)."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

context = multiprocessing.get_context("fork")
event = context.Event()


def task() -> None:
    event.wait()  # blocks here


if __name__ == "__main__":
    executor = ProcessPoolExecutor(1, mp_context=context)
    executor.submit(task)
    executor.shutdown()  # hangs here
    event.set()
    print("done", flush=True)
