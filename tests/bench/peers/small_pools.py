"""Peers of tests/bench/small.py: `small_pools.py KIND FUNCTION COUNT` runs its tasks and prints their results."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import sys
from collections.abc import Callable

import meeting
import small_tasks

Task = Callable[[int], int]


def run_pool(task: Task, count: int) -> list[int]:
    """multiprocessing.Pool."""
    with multiprocessing.Pool(meeting.WORKERS) as pool:
        return pool.map(task, range(count), chunksize=1)


def run_executor(task: Task, count: int) -> list[int]:
    """concurrent.futures.ProcessPoolExecutor."""
    with concurrent.futures.ProcessPoolExecutor(meeting.WORKERS) as executor:
        return list(executor.map(task, range(count)))


def run_bare(task: Task, count: int) -> list[int]:
    """One fork for each task, whose result is its exit code."""
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            os._exit(task(number))
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def main() -> None:
    """Runs and prints."""
    kind, function, count = sys.argv[1:]
    run = {"pool": run_pool, "executor": run_executor, "bare": run_bare}[kind]
    print(run(getattr(small_tasks, function), int(count)))


if __name__ == "__main__":
    main()
