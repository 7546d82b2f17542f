"""Asks a queue every second whether there is a result; the process that should put it has failed."""

import multiprocessing
import queue


def work(results) -> None:
    results.put(1 / 0)


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    worker = context.Process(target=work, args=(results,))
    worker.start()
    while True:
        try:
            print(results.get(timeout=1))  # hangs here
        except queue.Empty:
            continue
        break
    print("done")
