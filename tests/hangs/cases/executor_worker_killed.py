"""A worker of an executor is killed while large tasks wait to be written to it (cpython#94777)."""

import os
import signal
from concurrent.futures import ProcessPoolExecutor

MUCH = "x" * 50_000_000


def work(_data: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    with ProcessPoolExecutor(2) as executor:  # hangs here
        for _ in range(10):
            executor.submit(work, MUCH)
    print("done")
