"""A worker asks a queue twice a second whether there is work; the process that should put it waits for the worker."""

import multiprocessing
import queue


def work(tasks: multiprocessing.Queue) -> None:
    while True:
        try:
            print(tasks.get(timeout=0.5))  # blocks here
        except queue.Empty:
            continue
        return


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    tasks = context.Queue()
    child = context.Process(target=work, args=(tasks,))
    child.start()
    child.join()  # hangs here
    print("done")
