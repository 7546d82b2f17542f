"""Peers of tests/bench/executors.py: `python_pools.py POOL QUESTION WORKERS COUNT` prints {"seconds": ...}.

`submit` and `arrays` begin when every worker has run a task; `start` begins with nothing made.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy

from square import square

ELEMENTS = 125_000  # 1 MB of float64


def add_one(array: Any) -> Any:
    return array + 1


class PoolExecutor:
    """multiprocessing.Pool as far as the questions need an executor."""

    def __init__(self, workers: int) -> None:
        self.pool = multiprocessing.Pool(workers)

    def submit(self, function: Any, *args: Any) -> Any:
        answer = self.pool.apply_async(function, args)
        answer.result = answer.get  # type: ignore[attr-defined]
        return answer

    def map(self, function: Any, items: Any) -> Any:
        return self.pool.imap(function, items)

    def shutdown(self) -> None:
        self.pool.close()
        self.pool.join()


def make(pool: str, workers: int) -> Any:
    if pool == "mprun":
        import mprun

        return mprun.Executor(workers)
    if pool == "loky":
        from joblib.externals.loky import ProcessPoolExecutor as Loky

        return Loky(workers)
    return PoolExecutor(workers) if pool == "Pool" else ProcessPoolExecutor(workers)


def submit(executor: Any, count: int) -> None:
    futures = [executor.submit(square, number) for number in range(count)]
    total = sum(future.result() for future in futures)
    assert total == (count - 1) * count * (2 * count - 1) // 6


def arrays(executor: Any, count: int) -> None:
    inputs = (numpy.full(ELEMENTS, number, "f8") for number in range(count))
    for number, result in enumerate(executor.map(add_one, inputs)):
        assert result[0] == result[-1] == number + 1


def main() -> None:
    pool, question, workers, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    began = time.perf_counter()
    executor = make(pool, workers)
    submit(executor, 1 if question == "start" else 100 * workers)
    if question != "start":
        began = time.perf_counter()
        (submit if question == "submit" else arrays)(executor, count)
    seconds = time.perf_counter() - began
    executor.shutdown()
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
