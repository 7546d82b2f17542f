"""A task of a pool reads a pipe into which no process writes."""

import multiprocessing
import os

reader, writer = os.pipe()


def task(number: int) -> int:
    if number == 2:
        os.read(reader, 1)  # blocks here
    return number


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(task, range(4), chunksize=1))  # hangs here
