"""Python's own way to the workers: mprun.Executor beside ProcessPoolExecutor, loky and multiprocessing.Pool.

Each contender is a script that times itself: 100,000 trivial tasks submitted one by one until all results are there, a
map of 1 MB arrays that come back as new ones, and the time from nothing to the first result. mprun also writes one line
for each task to a results.jsonl; its peers record nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable

from bench import BENCH, MPRUN, PYTHON, Contender, Figures, Measurements
from bench import against, read_options, run_timed, show_milliseconds, show_rate

WORKERS = 2
EXECUTOR = "ProcessPoolExecutor"
POOLS = [EXECUTOR, "loky", "Pool", "mprun"]


def measure(pool: str, question: str, count: int) -> Callable[[], Figures]:
    """The figures of one contender."""

    def run() -> Figures:
        command = [PYTHON, BENCH / "peers/python_pools.py", pool, question, str(WORKERS), str(count)]
        seconds = json.loads(run_timed(command)[1])["seconds"]
        return {"seconds": seconds, "rate": count / seconds}

    return run


def main() -> None:
    """Measures and prints."""
    options = read_options("mprun.Executor beside ProcessPoolExecutor, loky and Pool.")
    os.environ["PYTHONPATH"] = str(MPRUN.parent.parent / "lib/mprun/python")
    share = 20 if options.quick else 1
    for question, count, title in (
        ("submit", 100_000 // share, "Trivial tasks, submitted one by one"),
        ("arrays", 1_000 // share, "Arrays of 1 MB, there and back, by map"),
        ("start", 1, "From nothing to the first result"),
    ):
        contenders = [Contender(pool, measure(pool, question, count)) for pool in POOLS]
        found = Measurements(contenders, options.rounds, warm_up=question == "start")
        figure, show = ("seconds", show_milliseconds) if question == "start" else ("rate", show_rate)
        found.print_table(f"{title}: {count:,}", figure, show, [against(EXECUTOR)])


if __name__ == "__main__":
    main()
