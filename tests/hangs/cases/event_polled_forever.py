"""Looks twice a second whether its child has set an event; the child waits for an item that nobody puts."""

import multiprocessing
import time


def work(items, done) -> None:
    items.get()
    done.set()


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    items, done = context.Queue(), context.Event()
    child = context.Process(target=work, args=(items, done))
    child.start()
    while not done.is_set():
        time.sleep(0.5)  # hangs here
    child.join()
    print("done")
