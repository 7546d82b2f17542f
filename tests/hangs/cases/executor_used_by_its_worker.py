"""A task submits another one to the executor of processes that runs it: its lock was held as the worker was forked."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context


def double(number: int) -> int:
    return 2 * number


def task(number: int) -> int:
    return executor.submit(double, number).result()


executor = ProcessPoolExecutor(2, get_context("fork"))

if __name__ == "__main__":
    print(list(executor.map(task, range(3))))  # hangs here
