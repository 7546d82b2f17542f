"""What the questions of tests/bench share: rounds, tables, and running mprun and its peers.

Run as a program it describes the machine: the head of every report. The questions are scripts
next to this one; each measures every contender once a round, one after the other, so that whatever
else changes with time changes for all.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent.parent
PYTHON = os.environ.get("MPRUN_PYTHON", "/usr/bin/python3")
MPRUN = Path(os.environ.get("MPRUN_BIN", ROOT / "build/release/bin/mprun"))

Figures = Mapping[str, float]  # what one run of a contender measured, by name


class Unmeasured(Exception):
    """A contender cannot run here; the message says why."""


@dataclass(frozen=True)
class Contender:
    """One line of a table. `measure` may raise Unmeasured."""

    name: str
    measure: Callable[[], Figures]


@dataclass(frozen=True)
class Reference:
    """A column of ratios: what each contender is compared with."""

    heading: str
    of: Callable[[str], str]  # the reference for a contender, by name
    aims: Mapping[str, str] = field(default_factory=dict)  # of contenders, by name


def against(name: str, aims: Mapping[str, str] | None = None) -> Reference:
    """The same reference for all. The aims, such as "at most 1.2", stand beside the ratios."""
    return Reference(f"/ {name}", lambda _: name, aims or {})


@dataclass(frozen=True)
class Options:
    """How thoroughly to measure a question."""

    rounds: int
    quick: bool


def read_options(description: str) -> Options:
    """The options that every question accepts."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--quick", action="store_true", help="one short round")
    parsed = parser.parse_args()
    return Options(1 if parsed.quick else max(parsed.rounds, 1), parsed.quick)


# --- rounds and tables -------------------------------------------------------------------------


class Measurements:
    """What every contender gave in every round."""

    def __init__(self, contenders: Sequence[Contender], rounds: int, warm_up: bool = False) -> None:
        """Measures; `warm_up` adds one round before the first, which does not count."""
        self._rounds: dict[str, list[Figures]] = {contender.name: [] for contender in contenders}
        self._absent: dict[str, str] = {}
        for number in range(0 if warm_up else 1, rounds + 1):
            for contender in contenders:
                if contender.name in self._absent:
                    continue
                show_progress(f"round {number} of {rounds}: {contender.name}" if number else contender.name)
                try:
                    figures = contender.measure()
                except Unmeasured as reason:
                    self._absent[contender.name] = str(reason)
                    continue
                if number:
                    self._rounds[contender.name].append(figures)
        show_progress("")

    def print_table(
        self,
        title: str,
        figure: str,
        show: Callable[[float], str],
        references: Sequence[Reference],
    ) -> None:
        """One line per contender that has the figure: its median, and the ratio to each reference."""
        headings = [reference.heading for reference in references]
        rows = [["", "median", *headings, "lowest .. highest"]]
        for name in self._rounds:
            if values := self._values(name, figure):
                ratios = [
                    beside(self.ratio(name, reference.of(name), figure), reference.aims.get(name))
                    for reference in references
                ]
                spread = f"{show(min(values))} .. {show(max(values))}"
                rows.append([name, show(statistics.median(values)), *ratios, spread])
        print(title)
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for name, *cells in rows:
            line = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths[1:]))
            print(f"  {name.ljust(widths[0])}  {line}".rstrip())
        for name, reason in self._absent.items():
            print(f"  {name}: not measured: {reason}")
        print()

    def median(self, name: str, figure: str) -> float | None:
        """The median of the rounds; None if there is no such figure."""
        values = self._values(name, figure)
        return statistics.median(values) if values else None

    def ratio(self, name: str, reference: str, figure: str) -> str:
        """The median of the rounds' ratios: each compares two runs that were close in time."""
        pairs = list(zip(self._values(name, figure), self._values(reference, figure)))
        if not pairs:
            return "-"
        ratio = statistics.median(value / base for value, base in pairs)
        return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}"

    def difference(self, name: str, reference: str, figure: str) -> float:
        """The median of the rounds' differences."""
        pairs = zip(self._values(name, figure), self._values(reference, figure))
        return statistics.median(value - base for value, base in pairs)

    def _values(self, name: str, figure: str) -> list[float]:
        return [figures[figure] for figures in self._rounds.get(name, []) if figure in figures]


def beside(ratio: str, aim: str | None) -> str:
    """A ratio, and its aim if it has one."""
    return f"{ratio} (aim: {aim})" if aim else ratio


def show_progress(text: str) -> None:
    """On a terminal, prints a line that says what is running; elsewhere nothing."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def show_rate(rate: float) -> str:
    """Something per second."""
    return f"{rate:,.0f}/s"


def show_milliseconds(seconds: float) -> str:
    """A short time."""
    return f"{seconds * 1000:,.1f} ms"


def show_megabytes(size: float) -> str:
    """A number of bytes, in millions."""
    return f"{size / 1e6:,.0f} MB"


# --- runs --------------------------------------------------------------------------------------


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our settings for every contender: one thread per worker, and the modules next to this file."""
    path = os.pathsep.join(filter(None, [str(BENCH), os.environ.get("PYTHONPATH")]))
    own = {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {**os.environ, **own, **(more or {})}


def run_timed(
    command: Sequence[str | Path], *, more: Mapping[str, str] | None = None, **popen: Any
) -> tuple[float, str]:
    """Seconds from start to exit of a command that must succeed, and what it printed; `more`: variables for it."""
    began = time.perf_counter()
    done = subprocess.run(
        [str(word) for word in command],
        env=environment(more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **{"stdin": subprocess.DEVNULL, **popen},
    )
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        sys.exit(f"failed with exit code {done.returncode}: {command}\n{done.stdout}{done.stderr}")
    return seconds, done.stdout


@contextmanager
def job_command(spec: Mapping[str, Any], *options: str) -> Iterator[tuple[list[str], Path]]:
    """The command line that runs a job, and the run directory it will leave; both are removed at the end."""
    with tempfile.TemporaryDirectory(prefix="mprun-bench-") as folder:
        job, output = Path(folder, "job.json"), Path(folder, "run")
        python = {"python": PYTHON} if "script" in spec else {}
        job.write_text(json.dumps({"version": 1, **python, **spec}))
        yield [str(MPRUN), "-q", "--output", str(output), *options, str(job)], output


_RESULT_END = re.compile(rb'"status":"ok",.*"start":([0-9.]+),"seconds":([0-9.]+)}\n')


def task_span(run_dir: Path, count: int) -> float:
    """Seconds from the start of the first task to the end of the last one, by results.jsonl.

    Fails unless every one of `count` tasks is recorded there as a success.
    """
    first, last, ok = float("inf"), 0.0, 0
    for match in _RESULT_END.finditer((run_dir / "results.jsonl").read_bytes()):
        start = float(match[1])
        first, last, ok = min(first, start), max(last, start + float(match[2])), ok + 1
    if ok != count:
        sys.exit(f"{run_dir}/results.jsonl records {ok} of {count} tasks as succeeded")
    return last - first


# --- the machine -------------------------------------------------------------------------------


def describe_machine() -> Iterator[str]:
    """The machine on which the figures were measured."""
    cpu = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    yield f"{cpu[1] if cpu else platform.machine()}, {len(os.sched_getaffinity(0))} usable CPUs"
    with open("/proc/meminfo", encoding="ascii") as lines:
        yield f"{int(next(lines).split()[1]) / 1e6:.0f} GB of memory, Linux {platform.release()}"
    yield f"{run_timed([MPRUN, '--version'])[1].strip()}, Python {platform.python_version()}"
    load = os.getloadavg()[0]
    yield f"load before the first question: {load:.2f}" + (", not idle!" if load > 0.5 else "")


if __name__ == "__main__":
    for fact in describe_machine():
        print(fact)
