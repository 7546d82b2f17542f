"""A parent asks again and again whether a child has ended, in one of four ways, and decides after a while to end it."""

import multiprocessing
import sys
import time

POLLS = 20


def has_ended(child: multiprocessing.Process, seconds: float) -> bool:
    child.join(timeout=seconds / POLLS)
    return child.exitcode is not None


if __name__ == "__main__":
    seconds, way = float(sys.argv[1]), sys.argv[2]
    context = multiprocessing.get_context("fork")
    tasks = context.Queue()
    child = context.Process(target=tasks.get)
    child.start()
    if way == "for":
        for _ in range(POLLS):
            has_ended(child, seconds)
    elif way == "count":
        failures = 0
        while failures < POLLS:
            failures += not has_ended(child, seconds)
    elif way == "deadline":
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            has_ended(child, seconds)
    else:
        begin = time.time()
        while time.time() - begin < seconds:
            has_ended(child, seconds)
    child.terminate()
    child.join()
    print("done")
