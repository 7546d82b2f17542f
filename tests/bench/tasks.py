"""Tasks per second of a trivial Python function on two workers: mprun, multiprocessing, joblib.

Peers are timed inside their own process, around the call, with the pool already made and used. For
mprun it is the time from the start of the first task to the end of the last one, as results.jsonl
records them. The next column is what a user waits for: the whole process, from start to exit. mprun
also writes one line for each task to results.jsonl, and its peers record nothing, but for the Pool whose parent
writes a line of JSON for each result.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from bench import BENCH, PYTHON, Contender, Figures, Measurements
from bench import against, job_command, read_options, run_timed, show_rate, task_span

WORKERS = 2
MOST_TASKS = 4_000_000  # Pool.map holds a list of them all

IMAP = "Pool.imap_unordered(chunksize=1)"
RECORDED = "Pool.map, a line for each result"
JOBLIB = "joblib.Parallel"
PEERS = {
    IMAP: "imap_unordered",
    "Pool.map(chunksize=1)": "map_1",
    "Pool.map": "map",
    RECORDED: "map_recorded",
    JOBLIB: "joblib",
}
JOBS: dict[str, list[str]] = {
    "mprun --chunk-size 1": ["--chunk-size", "1"],
    "mprun": [],
    "mprun --order completion": ["--order", "completion"],
}

Measure = Callable[[int], Figures]


def measure_peer(kind: str) -> Measure:
    """A peer's figures for a number of tasks."""

    def measure(count: int) -> Figures:
        command = [PYTHON, BENCH / "peers/pool_tasks.py", kind, str(WORKERS), str(count)]
        whole, printed = run_timed(command)
        return {"span": count / json.loads(printed)["seconds"], "whole": count / whole}

    return measure


def measure_mprun(options: list[str]) -> Measure:
    """mprun's figures for a number of tasks."""

    def measure(count: int) -> Figures:
        spec = {
            "script": str(BENCH / "square.py"),
            "function": "square",
            "inputs": {"range": count},
            "processes": WORKERS,
        }
        with job_command(spec, *options) as (command, run_dir):
            whole = run_timed(command)[0]
            return {"span": count / task_span(run_dir, count), "whole": count / whole}

    return measure


def find_count(measure: Measure, seconds: float) -> int:
    """The number of tasks that take about so long, found by increasingly large runs."""
    count = 20_000
    while True:
        rate = measure(count)["span"]
        if count / rate >= seconds / 4 or count == MOST_TASKS:
            return min(int(rate * seconds), MOST_TASKS)
        count = min(count * 8, MOST_TASKS)


def main() -> None:
    """Measures and prints."""
    options = read_options("Tasks per second of a trivial Python function.")
    seconds = 0.4 if options.quick else 2.5
    measures = {name: measure_peer(kind) for name, kind in PEERS.items()}
    measures |= {name: measure_mprun(more) for name, more in JOBS.items()}

    def contender(name: str, measure: Measure) -> Contender:
        count = find_count(measure, seconds)
        return Contender(name, lambda: measure(count))

    found = Measurements([contender(*item) for item in measures.items()], options.rounds)
    references = [
        against(IMAP, {"mprun --chunk-size 1": "at least 10"}),
        against(RECORDED, {"mprun": "at least 2"}),
        against(JOBLIB),
    ]
    for title, figure in {
        f"Tasks per second, x*x on {WORKERS} workers that have started": "span",
        "The same by the whole process, start and exit included": "whole",
    }.items():
        found.print_table(title, figure, show_rate, references)


if __name__ == "__main__":
    main()
