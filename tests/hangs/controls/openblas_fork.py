"""OpenBLAS (Debian's pthread build) is used before fork, in the children and afterwards."""

import multiprocessing
import sys
import time

import numpy as np


def multiply() -> float:
    matrix = np.ones((300, 300))
    return float((matrix @ matrix).sum())


def work(end: float) -> None:
    while time.monotonic() < end:
        assert multiply() == 300.0**3


if __name__ == "__main__":
    end = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else 20)
    assert multiply() == 300.0**3
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=work, args=(end,)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert multiply() == 300.0**3
    print("done", flush=True)
