"""What the watch costs: the supervisor's time while it watches programs of many threads, and one full look.

The supervisor's CPU time, as the scheduler counts it, over some seconds in which the program stays
in one state: asleep, blocked, busy in short bursts, or blocked except for one thread. Also what a deadline
costs the thread that sets it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import MPRUN, ROOT, Contender, Figures, Measurements, Options, Unmeasured
from bench import environment, read_options

sys.path.insert(0, str(ROOT / "tests"))
import harness  # noqa: E402

THREADS = (10, 200, 2000)
STATES = {
    "asleep": "asleep, each for an hour",
    "blocked": "blocked, until an outside event",
    "busy": "busy, each wakes 20 times a second",
    "one": "blocked but one, which wakes twice a second",
}
SETTLE = 2  # seconds, for the first looks
PATIENCE = 60


def program(name: str) -> Path:
    """A program in this folder."""
    path = MPRUN.parent / name
    if not path.is_file():
        raise Unmeasured(f"{path} is not there (build with MPRUN_BENCH=ON)")
    return path


@contextmanager
def running(*prefix: str | Path, state: str, threads: int) -> Iterator[int]:
    """The pid of a ready watched_load, started under `prefix`; it ends with the block."""
    words = [str(word) for word in (*prefix, program("watched_load"), state, threads)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, env=environment(), text=True, **pipes) as process:
        assert process.stdin is not None and process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise Unmeasured(f"{threads} threads could not be started")
        yield process.pid
        process.stdin.close()
        process.wait(PATIENCE)


def supervisor_of(guard: int) -> int:
    """The mprun process that watches."""
    return next(found.pid for found in harness.descendants(guard) if found.name == "mprun")


def cpu_seconds(pid: int) -> float:
    """The exact CPU time of a process with one thread: stat(5) counts in hundredths."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9


def measure_watch(state: str, threads: int, seconds: float) -> Figures:
    """The supervisor's share of one core."""
    with running(MPRUN, "--", state=state, threads=threads) as guard:
        supervisor = supervisor_of(guard)
        time.sleep(SETTLE)
        used, began = cpu_seconds(supervisor), time.monotonic()
        time.sleep(seconds)
        used, passed = cpu_seconds(supervisor) - used, time.monotonic() - began
    return {"share": used / passed}


def measure_look(threads: int, count: int) -> Figures:
    """The seconds of one full sample, and of its judgement."""
    with running(state="blocked", threads=threads) as pid:
        words = [str(program("judge_cost")), str(pid), str(count)]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    if int(said[0]) != threads:
        raise Unmeasured(f"{said[0]} of {threads} threads were seen")
    return {"sample": float(said[1]), "judgement": float(said[2])}


PYTHON_DEADLINE = """
import timeit, mprun
def block():
    with mprun.deadline(60, "loading"):
        pass
print(timeit.timeit(block, number={count}) / {count})
"""


def measure_deadline(*command: str | Path) -> Figures:
    """The seconds to begin and end one deadline."""
    words = [str(word) for word in (MPRUN, "--", *command)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment())
    return {"deadline": float(done.stdout)}


def deadline_contenders(count: int) -> list[Contender]:
    """From C and from Python."""
    source = PYTHON_DEADLINE.format(count=count)
    return [
        Contender("C", lambda: measure_deadline(program("deadline_cost"), str(count))),
        Contender("Python", lambda: measure_deadline(harness.MPRUN_PYTHON, "-c", source)),
    ]


def show_share(share: float) -> str:
    """A share of one core."""
    return f"{share * 100:.2f} %"


def show_milliseconds(seconds: float) -> str:
    """A short time."""
    return f"{seconds * 1000:.2f} ms"


def show_nanoseconds(seconds: float) -> str:
    """A very short time."""
    return f"{seconds * 1e9:.0f} ns"


def watch_contender(state: str, threads: int, seconds: float) -> Contender:
    """One line of the first tables."""
    return Contender(f"{threads:,} threads", lambda: measure_watch(state, threads, seconds))


def look_contender(threads: int, count: int) -> Contender:
    """One line of the last tables."""
    return Contender(f"{threads:,} threads", lambda: measure_look(threads, count))


def main() -> None:
    """Measures and prints."""
    options: Options = read_options("What the watch costs.")
    seconds = 3 if options.quick else 10
    for state, words in STATES.items():
        contenders = [watch_contender(state, threads, seconds) for threads in THREADS]
        found = Measurements(contenders, options.rounds)
        found.print_table(f"Of one core, while threads are {words}", "share", show_share, [])
    count = 10 if options.quick else 50
    found = Measurements([look_contender(threads, count) for threads in THREADS], options.rounds)
    found.print_table("One full sample of the tree", "sample", show_milliseconds, [])
    found.print_table("The judgement of it", "judgement", show_milliseconds, [])
    found = Measurements(deadline_contenders(100_000 if options.quick else 1_000_000), options.rounds)
    found.print_table("A deadline, begun and ended", "deadline", show_nanoseconds, [])


if __name__ == "__main__":
    main()
