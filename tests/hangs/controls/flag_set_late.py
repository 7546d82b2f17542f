"""A parent polls a flag in shared memory, which a thread of its child sets after some seconds."""

import multiprocessing
import sys
import threading
import time


def set_later(ready, seconds: float) -> None:
    timer = threading.Timer(seconds, lambda: setattr(ready, "value", 1))
    timer.start()
    timer.join()


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    ready = context.Value("i", 0)
    child = context.Process(target=set_later, args=(ready, float(sys.argv[1])))
    child.start()
    while ready.value == 0:
        time.sleep(0.02)
    child.join()
    print("done")
