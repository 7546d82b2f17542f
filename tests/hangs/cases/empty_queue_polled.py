"""Looks whether there is an item in a queue; the child that should put it ends before."""

import multiprocessing
import time


def work(items) -> None:
    with open("/no/such/input") as file:
        items.put(file.read())


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    items = context.Queue()
    child = context.Process(target=work, args=(items,))
    child.start()
    while items.empty():
        time.sleep(0.1)  # hangs here
    print(items.get())
