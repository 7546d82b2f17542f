"""A child waits for an eventfd; another one sleeps, then counts it up."""

import multiprocessing
import os
import sys
import time


def wake(counter: int, seconds: float) -> None:
    time.sleep(seconds)
    os.eventfd_write(counter, 1)


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    context = multiprocessing.get_context("fork")
    counter = os.eventfd(0)
    waiter = context.Process(target=os.eventfd_read, args=(counter,))
    waker = context.Process(target=wake, args=(counter, seconds))
    waiter.start()
    waker.start()
    waiter.join()
    waker.join()
    assert waiter.exitcode == waker.exitcode == 0
    print("done", flush=True)
