"""A parent polls for a result, in one of three ways, and decides after a while to do without it."""

import multiprocessing
import queue
import sys
import time

POLLS = 10


def ask(results: multiprocessing.Queue, seconds: float) -> bool:
    try:
        results.get(timeout=seconds / POLLS)
    except queue.Empty:
        return False
    return True


if __name__ == "__main__":
    seconds, way = float(sys.argv[1]), sys.argv[2]
    context = multiprocessing.get_context("fork")
    tasks, results = context.Queue(), context.Queue()
    child = context.Process(target=tasks.get)
    child.start()
    if way == "for":
        for _ in range(POLLS):
            ask(results, seconds)
    elif way == "count":
        failures = 0
        while failures < POLLS:
            failures += not ask(results, seconds)
    else:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ask(results, seconds)
    child.terminate()
    child.join()
    print("done")
