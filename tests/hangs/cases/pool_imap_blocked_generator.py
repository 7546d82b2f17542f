"""Case 18: Pool.imap over a generator that never ends: the task thread waits in it."""

import multiprocessing
import queue
from collections.abc import Iterator

inputs: queue.Queue[int] = queue.Queue()


def read_inputs() -> Iterator[int]:
    while True:
        yield inputs.get()  # blocks here


def main() -> None:
    inputs.put(-1)
    pool = multiprocessing.get_context("fork").Pool(2)
    results = pool.imap(abs, read_inputs())
    assert next(results) == 1
    pool.close()
    pool.join()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
