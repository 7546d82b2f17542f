"""A bounded queue is full until a thread of the parent begins to take items out of it, after some seconds."""

import multiprocessing
import sys
import threading
import time


def put_all(items) -> None:
    for number in range(8):
        items.put(number)


def take_all(items, seconds: float) -> None:
    time.sleep(seconds)
    for _ in range(8):
        items.get()


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    items = context.Queue(maxsize=2)
    child = context.Process(target=put_all, args=(items,))
    child.start()
    taker = threading.Thread(target=take_all, args=(items, float(sys.argv[1])))
    taker.start()
    child.join()
    taker.join()
    print("done")
