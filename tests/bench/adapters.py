"""What the adapters cost a program: process start, fork, and OpenMP regions after a fork.

Every contender runs the same program with and without the preload library in its environment, as
`mprun -- COMMAND` would put it there; mprun itself is not in these figures. Python is timed with
the site folder too.
"""

from __future__ import annotations

from bench import BENCH, MPRUN, PYTHON, Contender, Figures, Measurements, Options, Unmeasured
from bench import against, read_options, run_timed

LIBRARY = MPRUN.parent.parent / "lib/mprun/libmprun_preload.so"
SITE = MPRUN.parent.parent / "lib/mprun/python/site"
PLAIN, WITH = "without the adapters", "with them"

AIM = "at most 1.2"  # of each fork and region: what waits until all is quiet must cost nothing when all is
FORK_QUESTIONS = {
    "forks": ("A fork and the wait for the child, one thread", 1000),
    "threaded-forks": ("The same beside three idle threads", 1000),
    "warm-forks": ("The same after the use of OpenMP: the team is ended, once", 1000),
    "parent-regions": ("An OpenMP region of two threads in the parent after a fork", 20000),
    "child-regions": ("The same in a child of a parent without OpenMP", 20000),
}


def adapted(words: list[str], on: bool) -> list[str]:
    """The command with the adapters' variables, or with others that have no effect."""
    names = [f"LD_PRELOAD={LIBRARY}", f"PYTHONPATH={SITE}"] if on else ["X_PRELOAD=", "X_PATH="]
    return ["/usr/bin/env", *names, *words]


def program(name: str) -> str:
    """A program in this folder."""
    path = MPRUN.parent / name
    if not path.is_file():
        raise Unmeasured(f"{path} is not there (build with MPRUN_BENCH=ON)")
    return str(path)


def measure_starts(count: int, on: bool) -> Figures:
    """Seconds per /bin/true, started one after the other."""
    loop = adapted([program("spawn_loop"), str(count), "1", "/bin/true"], on)
    return {"seconds": run_timed(loop)[0] / count}


def measure_pythons(count: int, on: bool) -> Figures:
    """Seconds per Python process that does nothing."""
    loop = adapted(["/bin/sh", "-c", f"for i in $(seq {count}); do {PYTHON} -c pass; done"], on)
    return {"seconds": run_timed(loop)[0] / count}


def measure_question(question: str, count: int, on: bool) -> Figures:
    """What fork_cost prints."""
    words = adapted([program("fork_cost"), question, str(count)], on)
    return {"seconds": float(run_timed(words)[1])}


def measure_python_forks(count: int, on: bool, *imports: str) -> Figures:
    """What fork_python.py prints."""
    words = adapted([PYTHON, str(BENCH / "fork_python.py"), str(count), *imports], on)
    return {"seconds": float(run_timed(words)[1])}


def show_microseconds(seconds: float) -> str:
    """A very short time."""
    return f"{seconds * 1e6:,.1f} us"


def compare(title: str, options: Options, measure: object, aim: str = "", more: str = "") -> None:
    """One table: the same without and with the adapters. The aims are those of the ratio and of the difference."""
    assert callable(measure)
    contenders = [
        Contender(PLAIN, lambda: measure(False)),
        Contender(WITH, lambda: measure(True)),
    ]
    found = Measurements(contenders, options.rounds, warm_up=True)
    if more:
        title += f": {show_microseconds(found.difference(WITH, PLAIN, 'seconds'))} more (aim: {more})"
    found.print_table(title, "seconds", show_microseconds, [against(PLAIN, {WITH: aim})])


def main() -> None:
    """Measures and prints."""
    options = read_options("What the adapters cost a program.")
    share = 10 if options.quick else 1
    starts = 500 // share
    compare("Start and end of /bin/true", options, lambda on: measure_starts(starts, on))
    pythons = 50 // share
    title = "Start and end of python3 -c pass"
    compare(title, options, lambda on: measure_pythons(pythons, on), more="at most 500")
    forks = 500 // share
    compare("os.fork and the wait for the child", options, lambda on: measure_python_forks(forks, on))
    compare(
        "The same in a process that has used torch with two threads",
        options,
        lambda on: measure_python_forks(forks // 5, on, "torch"),
    )
    for question, (title, count) in FORK_QUESTIONS.items():
        compare(title, options, lambda on: measure_question(question, count // share, on), AIM)


if __name__ == "__main__":
    main()
