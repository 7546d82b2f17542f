"""Seconds from start to first result on four workers with torch imported, by start method.

Every contender is a process whose first line of output is its first result: a job of mprun with
`--results -`, a multiprocessing.Pool, and four bare forks. The figures:

* start to first result, all included;
* the same without the imports of torch that this result had to wait for, as timed by the script itself
  them (with Pool and spawn: the parent's and one worker's);
* from the end of the last import to the task's run, by the clock of the task, and to its result:
  what a start costs once torch is loaded. Not measured for spawn: its workers import at the same time.

Then the same for a task that returns only when all four workers run it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import meeting
from bench import BENCH, PYTHON, Contender, Figures, Measurements, Reference
from bench import against, environment, job_command, read_options, show_milliseconds

METHODS = ("fork", "forkserver", "spawn")
BARE = "bare fork"


def measure_start(command: Sequence[str]) -> Figures:
    """The figures of one process that prints a result as its first line."""
    with tempfile.TemporaryDirectory(prefix="mprun-bench-") as folder:
        began = time.time()
        with subprocess.Popen(
            command,
            env=environment({meeting.FOLDER: folder}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            seen = time.time()
            process.stdout.read()
        if process.returncode != 0 or not line:
            sys.exit(f"failed with exit code {process.returncode}: {command}")
    result: Any = json.loads(line)
    result = result.get("value", result)  # a line of mprun's results, or just the value
    imports = result["imports"]
    imported = max(end for _, end in imports)
    return {
        "whole": seen - began,
        "without imports": seen - began - sum(end - start for start, end in imports),
        "import to task": result["ran"] - imported,
        "import to result": seen - imported,
    }


def without_spawn(figures: Figures, method: str) -> Figures:
    """The figures that are meaningful for a start method."""
    if method != "spawn":
        return figures
    return {name: value for name, value in figures.items() if not name.startswith("import to ")}


def measure_mprun(method: str, task: str) -> Figures:
    """A job of mprun. Its forkserver imports torch beforehand, as its fork does with the script."""
    spec = {
        "script": str(BENCH / "torch_tasks.py"),
        "function": task,
        "inputs": {"range": meeting.WORKERS},
        "processes": meeting.WORKERS,
        "start_method": method,
        "chunk_size": 1,
        "order": "completion",
        "preload": ["timed_torch"] if method == "forkserver" else [],
    }
    with job_command(spec, "--results", "-") as (command, _):
        return without_spawn(measure_start(command), method)


def measure_pool(method: str, task: str) -> Figures:
    """A script with a multiprocessing.Pool; its forkserver preloads torch."""
    figures = measure_start([PYTHON, str(BENCH / "peers/pool_start.py"), method, task])
    return without_spawn(figures, method)


def measure_bare(task: str) -> Figures:
    """Four forks."""
    return measure_start([PYTHON, str(BENCH / "peers/fork_start.py"), task])


def ask(task: str, until: str, rounds: int) -> None:
    """Measures one task and prints its tables."""
    contenders = [Contender(BARE, lambda: measure_bare(task))]
    for method in METHODS:
        contenders += [
            Contender(f"Pool, {method}", lambda method=method: measure_pool(method, task)),
            Contender(f"mprun, {method}", lambda method=method: measure_mprun(method, task)),
        ]
    found = Measurements(contenders, rounds, warm_up=True)
    pool = Reference("/ Pool's own", lambda name: name.replace("mprun", "Pool"))
    for title, figure in {
        f"Start to {until}, {meeting.WORKERS} workers, torch": "whole",
        "The same without the imports that had to be waited for": "without imports",
        "From the end of the import to the task's run": "import to task",
        f"From the end of the import to the {until}": "import to result",
    }.items():
        found.print_table(title, figure, show_milliseconds, [against(BARE), pool])


def main() -> None:
    """Measures and prints."""
    options = read_options("Seconds from start to first result on four workers.")
    ask("first", "first result", options.rounds)
    ask("meet", "first result of a task that needs all workers", options.rounds)


if __name__ == "__main__":
    main()
