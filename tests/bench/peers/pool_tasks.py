"""Peers of tests/bench/tasks.py: `pool_tasks.py KIND WORKERS COUNT` prints {"seconds": ...}.

The pool exists and every worker has run a task before the clock starts; it stops when the caller has
all results.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterable

from square import square

Run = Callable[[Iterable[int]], Iterable[int]]  # calls square for each number


def timed(run: Run, workers: int, count: int) -> float:
    """Seconds for `count` tasks after a warm-up; fails if a result is missing or wrong."""
    assert sum(run(range(100 * workers))) == sum(number * number for number in range(100 * workers))
    began = time.perf_counter()
    total = sum(run(range(count)))
    seconds = time.perf_counter() - began
    assert total == (count - 1) * count * (2 * count - 1) // 6
    return seconds


def record(results: list[int]) -> list[int]:
    """Writes a line of JSON for each result to a file, as a script would that wants to keep them."""
    with tempfile.TemporaryFile("w") as lines:
        for number, value in enumerate(results):
            lines.write(json.dumps({"task": number, "value": value}) + "\n")
    return results


def run_pool(kind: str, workers: int, count: int) -> float:
    """multiprocessing.Pool, with the start method that `kind` names."""
    with multiprocessing.Pool(workers) as pool:
        runs: dict[str, Run] = {
            "imap_unordered": lambda numbers: pool.imap_unordered(square, numbers, chunksize=1),
            "map_1": lambda numbers: pool.map(square, numbers, chunksize=1),
            "map": lambda numbers: pool.map(square, numbers),
            "map_recorded": lambda numbers: record(pool.map(square, numbers)),
        }
        return timed(runs[kind], workers, count)


def run_joblib(workers: int, count: int) -> float:
    """joblib with its default back end (loky) and the batch size that it chooses."""
    import joblib

    task = joblib.delayed(square)
    with joblib.Parallel(n_jobs=workers) as parallel:
        return timed(lambda numbers: parallel(task(x) for x in numbers), workers, count)


def main() -> None:
    """Runs what the command line names."""
    kind, workers, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    run = run_joblib(workers, count) if kind == "joblib" else run_pool(kind, workers, count)
    print(json.dumps({"seconds": run}))


if __name__ == "__main__":
    main()
