"""Commands per second of /bin/true, two at a time: mprun, a bare loop, xargs, GNU parallel.

All are timed as whole processes. mprun is timed a second way, from the start of the first command
to the end of the last one by results.jsonl: that leaves out its own start and exit.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from subprocess import run as run_command
from typing import IO

from bench import MPRUN, Contender, Figures, Measurements, Unmeasured
from bench import against, job_command, read_options, run_timed, show_rate, task_span

SLOTS = 2
PROGRAM = "/bin/true"

LOOP = "posix_spawn loop in C"
XARGS = f"xargs -P{SLOTS} -n1"
PARALLEL = f"GNU parallel -j{SLOTS}"
MPRUN_NAME = f"mprun -n {SLOTS}"


def find_tool(name: str, version: str = "") -> str:
    """The path of a program whose --version prints `version`."""
    path = shutil.which(name)
    if path is None:
        raise Unmeasured(f"there is no {name} on PATH")
    if version:
        said = run_command([path, "--version"], capture_output=True, text=True).stdout
        if version not in said:
            raise Unmeasured(f"{path} is not {version}'s")
    return path


def measure_loop(count: int) -> Figures:
    """The reference: nothing but posix_spawn and waitid."""
    program = MPRUN.parent / "spawn_loop"
    if not program.is_file():
        raise Unmeasured(f"{program} is not there (build with MPRUN_BENCH=ON)")
    return {"rate": count / run_timed([program, str(count), str(SLOTS), PROGRAM])[0]}


def measure_lines(command: list[str], numbers: IO[str], count: int) -> Figures:
    """A tool that reads one argument per line from standard input."""
    numbers.seek(0)
    return {"rate": count / run_timed(command, stdin=numbers)[0]}


def measure_xargs(numbers: IO[str], count: int) -> Figures:
    """xargs, one process for each line."""
    words = [find_tool("xargs"), f"-P{SLOTS}", "-n1", PROGRAM]
    return measure_lines(words, numbers, count)


def measure_parallel(numbers: IO[str], count: int) -> Figures:
    """GNU parallel, with its default: it records nothing."""
    words = [find_tool("parallel", "GNU"), "--will-cite", f"-j{SLOTS}", PROGRAM]
    return measure_lines(words, numbers, count)


def measure_moreutils(count: int) -> Figures:
    """The parallel of moreutils, under the name Debian gives it when GNU's is installed."""
    tool = find_tool("parallel.moreutils")
    words = [tool, f"-j{SLOTS}", PROGRAM, "--", *map(str, range(count))]
    return {"rate": count / run_timed(words)[0]}


def measure_mprun(count: int) -> Figures:
    """A command job, which keeps the output, exit code and times of every command."""
    spec = {"command": [PROGRAM, "{}"], "inputs": {"range": count}, "processes": SLOTS}
    with job_command(spec) as (command, run_dir):
        whole = run_timed(command)[0]
        return {"rate": count / whole, "span": count / task_span(run_dir, count)}


def mprun_by_results(count: int) -> Figures:
    """mprun without its own start and exit."""
    return {"rate": measure_mprun(count)["span"]}


def main() -> None:
    """Measures and prints."""
    options = read_options("Commands per second of /bin/true.")
    count = 400 if options.quick else 3000
    with tempfile.TemporaryDirectory(prefix="mprun-bench-") as folder:
        lines = Path(folder, "numbers")
        lines.write_text("".join(f"{number}\n" for number in range(count)))
        with open(lines, encoding="ascii") as numbers:
            contenders = [
                Contender(LOOP, lambda: measure_loop(count)),
                Contender(MPRUN_NAME, lambda: measure_mprun(count)),
                Contender(f"{MPRUN_NAME}, by results.jsonl", lambda: mprun_by_results(count)),
                Contender(XARGS, lambda: measure_xargs(numbers, count)),
                Contender("moreutils parallel", lambda: measure_moreutils(count)),
                Contender(PARALLEL, lambda: measure_parallel(numbers, count)),
            ]
            found = Measurements(contenders, options.rounds)
    title = f"Commands per second, {count:,} x {PROGRAM}, {SLOTS} at a time"
    references = [
        against(LOOP),
        against(XARGS, {MPRUN_NAME: "at least 1.3"}),
        against(PARALLEL, {MPRUN_NAME: "at least 8"}),
    ]
    found.print_table(title, "rate", show_rate, references)


if __name__ == "__main__":
    main()
