"""The child dies before it sets the flag in shared memory that its parent polls."""

import multiprocessing
import time


def prepare(ready) -> None:
    raise RuntimeError("no data")


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    ready = context.Value("i", 0)
    child = context.Process(target=prepare, args=(ready,))
    child.start()
    while ready.value == 0:
        time.sleep(0.02)  # hangs here
    child.join()
    print("done")
