"""What a user waits for when the work is small: whole processes, from start to exit.

* A job of three trivial tasks on four workers by fork, against scripts with a Pool and a ProcessPoolExecutor.
* A job whose tasks end when all four workers run one, against bare forks. Nothing imports torch.
* A program under `mprun --`, against the program alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

import meeting
from bench import BENCH, MPRUN, PYTHON, Contender, Figures, Measurements
from bench import against, job_command, read_options, run_timed, show_milliseconds

TASKS = 3
POOL, BARE, MPRUN_FORK = "Pool, fork", "bare forks", "mprun, fork"
PROGRAMS = {"python3 -c pass": [PYTHON, "-c", "pass"], "true": ["/bin/true"]}


def measure(command: Sequence[str]) -> Figures:
    """A whole process, whose workers have a place to meet."""
    with tempfile.TemporaryDirectory(prefix="mprun-bench-") as folder:
        return {"whole": run_timed(command, more={meeting.FOLDER: folder})[0]}


def measure_job(function: str, count: int) -> Figures:
    """A job by fork."""
    spec = {
        "script": str(BENCH / "small_tasks.py"),
        "function": function,
        "inputs": {"range": count},
        "processes": meeting.WORKERS,
        "start_method": "fork",
        "chunk_size": 1,
    }
    with job_command(spec) as (command, _):
        return measure(command)


def measure_peer(kind: str, function: str, count: int) -> Figures:
    """A script of Python."""
    return measure([PYTHON, str(BENCH / "peers/small_pools.py"), kind, function, str(count)])


def measure_program(program: list[str], watched: bool) -> Figures:
    """A program, under mprun or alone."""
    return measure([str(MPRUN), "-q", "--", *program] if watched else program)


def main() -> None:
    """Measures and prints."""
    options = read_options("Seconds from start to exit of small work.")
    rounds = 1 if options.quick else 4 * options.rounds
    jobs = [
        Contender(POOL, lambda: measure_peer("pool", "square", TASKS)),
        Contender("ProcessPoolExecutor, fork", lambda: measure_peer("executor", "square", TASKS)),
        Contender(MPRUN_FORK, lambda: measure_job("square", TASKS)),
    ]
    found = Measurements(jobs, rounds, warm_up=True)
    aims = {MPRUN_FORK: "at most 1.2"}
    title = f"{TASKS} trivial tasks, {meeting.WORKERS} workers"
    found.print_table(title, "whole", show_milliseconds, [against(POOL, aims)])

    meetings = [
        Contender(BARE, lambda: measure_peer("bare", "meet", meeting.WORKERS)),
        Contender(POOL, lambda: measure_peer("pool", "meet", meeting.WORKERS)),
        Contender(MPRUN_FORK, lambda: measure_job("meet", meeting.WORKERS)),
    ]
    found = Measurements(meetings, rounds, warm_up=True)
    title = f"{meeting.WORKERS} workers until all work, and their end"
    found.print_table(title, "whole", show_milliseconds, [against(BARE, aims), against(POOL)])

    for name, program in PROGRAMS.items():
        watched = f"mprun -- {name}"
        programs = [
            Contender(name, lambda program=program: measure_program(program, False)),
            Contender(watched, lambda program=program: measure_program(program, True)),
        ]
        found = Measurements(programs, rounds, warm_up=True)
        more = show_milliseconds(found.difference(watched, name, "whole"))
        found.print_table(f"A program: {more} more (aim: at most 5)", "whole", show_milliseconds, [against(name)])


if __name__ == "__main__":
    main()
