"""Sleeps until a process has ended, and takes from its queue only then: one that has put much does not end."""

import multiprocessing
import time


def work(results) -> None:
    results.put("x" * 1_000_000)


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    worker = context.Process(target=work, args=(results,))
    worker.start()
    while worker.is_alive():
        time.sleep(0.1)
    print(len(results.get()))
    print("done")
