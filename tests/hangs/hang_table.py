"""Prints the tables of tests/hangs/table, which starts this.

    hang_table.py cases RUNS [CASE...]
    hang_table.py controls RUNS [CONTROL...]
    hang_table.py inspections RUNS [CASE...]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import blocked
import controls
import corpus
import found
import harness
import side_by_side
from controls import Control
from corpus import Case
from harness import Running

LOOK_EVERY = 0.02  # seconds between two looks at a case
PATIENCE = 600  # seconds for a run of all controls, beside other load
INSPECTION_PATIENCE = 45  # seconds until a plain program counts as live
NOT_PROVED = "not proved: "


@dataclass
class Row:
    """All runs of one case."""

    case: Case
    runs: int = 0
    right: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    joins: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        times = ["", ""]
        if self.seconds:
            times = [f"{statistics.median(self.seconds):.2f}", f"{max(self.seconds):.2f}"]
        number = str(self.case.number or "")
        seen = [summary_of(counter) for counter in (self.verdicts, self.causes, self.joins)]
        return line([number, self.case.name, *seen, f"{self.right} of {self.runs}", *times])


def summary_of(counter: Counter[str]) -> str:
    """What was reported; how often, if it varied."""
    if len(counter) == 1:
        return next(iter(counter))
    return ", ".join(f"{what} ({count})" for what, count in counter.most_common())


def line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


class Rests:
    """Finds the longest time for which the program was at rest, by looking at it again and again."""

    def __init__(self, case: Case, running: Running) -> None:
        self._main_only = case.only_main_rests
        self._beside = case.rest == "beside"
        self._running = running
        self._before: dict[str, str] | None = None
        self._since = time.time()
        self._longest = 0.0
        self.began = self._since  # the longest rest so far

    def look(self) -> None:
        processes = [pid for pid in below(self._running.pid) if not is_mprun(pid)]
        folders = [f"/proc/{pid}/task/{pid}" for pid in processes[:1]]
        if not self._main_only:
            threads = [Path(f"/proc/{pid}/task") for pid in processes]
            folders = [str(task) for folder in threads for task in entries(folder)]
        if self._beside:
            mains = {f"/proc/{pid}/task/{pid}" for pid in processes}
            folders = [folder for folder in folders if folder not in mains]
        now, when = blocked.picture(folders, "SDZT"), time.time()
        if now is None or now != self._before or not folders:
            self._before, self._since = now, when
        elif when - self._since > self._longest:
            self._longest, self.began = when - self._since, self._since


def entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:  # it has ended
        return []


def is_mprun(pid: int) -> bool:
    """True for its guard, which is above the program."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() in blocked.MPRUN_NAMES
    except OSError:
        return False


def below(root: int) -> Iterator[int]:
    """The processes below `root`, nearest first; quicker than a look at all processes."""
    pending = [root]
    while pending:
        children = []
        for task in entries(Path(f"/proc/{pending.pop(0)}/task")):
            try:
                children += [int(pid) for pid in (task / "children").read_text().split()]
            except OSError:
                pass
        yield from children
        pending += children


def run_once(row: Row, folder: Path) -> list[str]:
    """One run of the case; returns what was wrong."""
    runner = harness.Runner(harness.MPRUN_BIN, folder)
    try:
        running, report = found.start(runner, row.case, folder)
        rests = Rests(row.case, running)
        deadline = time.monotonic() + 120
        while running.process.poll() is None and not report.is_file():
            if time.monotonic() > deadline:
                break
            rests.look()
            time.sleep(LOOK_EVERY)
        reported = report.stat().st_mtime if report.is_file() else None  # it is replaced when more can never return
        what = found.finish(row.case, running, report)
    except AssertionError as late:
        row.runs += 1
        row.verdicts["none"] += 1
        return [str(late).partition("\n")[0]]
    finally:
        runner.finish()
        harness.kill_all(harness.living_descendants())
        harness.reap_zombies()
    wrong = list(found.complaints(what))
    row.runs += 1
    row.right += not wrong
    row.verdicts[what.verdict] += 1
    row.causes[what.cause] += 1
    row.joins[what.join] += 1
    if reported is not None:
        row.seconds.append(max(0.0, reported - rests.began))
    return wrong


def chosen(names: list[str]) -> list[Case]:
    """The cases that the command line names; all of them if it names none."""
    cases = []
    for name in names:
        matching = [
            case
            for case in corpus.ALL
            if name in (case.name, case.program, Path(case.program).stem, str(case.number))
        ]
        if not matching:
            sys.exit(f"tests/hangs/table: there is no case {name}")
        cases += matching
    return cases or corpus.HERE


def chosen_controls(names: list[str]) -> list[Control]:
    """The controls that the command line names; all of them if it names none."""
    unknown = set(names) - {name for control in controls.HERE for name in (control.name, control.program)}
    if unknown:
        sys.exit(f"tests/hangs/table: there is no control {min(unknown)}")
    return [one for one in controls.HERE if not names or one.name in names or one.program in names]


def print_controls(runs: int, chosen: list[Control]) -> bool:
    """Runs the controls side by side, again and again; True if all were silent in every run."""
    silent: Counter[str] = Counter()
    reports = 0
    for number in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            ends = side_by_side.run_watched(Path(folder), chosen, PATIENCE)
        for name, end in ends.items():
            wrong = list(side_by_side.complaints(end))
            silent[name] += not wrong
            reports += side_by_side.WAS_REPORTED in wrong
            if wrong:
                print(f"{name}, run {number + 1}: {', '.join(wrong)}", end.stdout, end.stderr, sep="\n", file=sys.stderr)
    print(line(["control", "stall limit, s", "silent"]), line(["---"] * 3), sep="\n")
    for control in chosen:
        print(line([control.name, str(control.stall_seconds), f"{silent[control.name]} of {runs}"]))
    print(f"\n{silent.total()} of {runs * len(chosen)} runs silent, of {len(chosen)} controls;", end=" ")
    print(f"a hang was reported in {reports}.")
    return silent.total() == runs * len(chosen)


def print_cases(runs: int, cases: list[Case]) -> bool:
    """Runs the cases one after the other; True if all was right in every run."""
    heads = ["#", "case", "verdict", "cause", "join", "right", "median s", "worst s"]
    print(line(heads), line(["---"] * len(heads)), sep="\n", flush=True)
    right = 0
    for case in cases:
        row = Row(case)
        for number in range(runs):
            with tempfile.TemporaryDirectory() as folder:
                for wrong in run_once(row, Path(folder)):
                    print(f"{case.name}, run {number + 1}: {wrong}", file=sys.stderr)
        right += row.right
        print(row, flush=True)
    print(f"\n{right} of {runs * len(cases)} runs right. Stalled: --stall-seconds", end=" ")
    print(f"{corpus.STALL_SECONDS}.")
    return right == runs * len(cases)


def inspect_plain(case: Case, folder: Path) -> dict[str, Any]:
    """The case runs without mprun until `mprun inspect --wait` has a verdict; that report."""
    runner = harness.Runner(harness.MPRUN_BIN, folder)
    report: dict[str, Any] = {"verdict": "none", "cause": {}}
    try:
        running = runner.start_plain(*case.argv(folder), env=case.environment(folder))
        deadline = time.monotonic() + INSPECTION_PATIENCE
        while report["verdict"] in ("none", "live") and (left := deadline - time.monotonic()) > 1:
            inspect = [harness.MPRUN_BIN, "inspect", "--json", "--wait", str(int(left)), str(running.pid)]
            text = subprocess.run(inspect, stdout=subprocess.PIPE, check=False).stdout
            report = json.loads(text) if text else report  # else it has ended
            time.sleep(LOOK_EVERY)
        return report
    finally:
        runner.finish()
        harness.kill_all(harness.living_descendants())
        harness.reap_zombies()


def print_inspections(runs: int, cases: list[Case]) -> bool:
    """Runs each case under mprun and plain; True if watch and inspection said the same every time."""
    heads = ["case", "watch", "inspection", "same", "what the inspection has not proved"]
    print(line(heads), line(["---"] * len(heads)), sep="\n", flush=True)
    same_in_all = 0
    for case in cases:
        row = Row(case)
        inspected: Counter[str] = Counter()
        doubts: Counter[str] = Counter()
        same = 0
        for _ in range(runs):
            with tempfile.TemporaryDirectory() as folder:
                run_once(row, Path(folder))
            with tempfile.TemporaryDirectory() as folder:
                report = inspect_plain(case, Path(folder))
            cause = report["cause"] or {}  # none of what is live
            inspected[f"{report['verdict']}, {cause.get('id', 'none')}"] += 1
            doubts[cause.get("explanation", "").partition(NOT_PROVED)[2]] += 1
            same += report["verdict"] in row.verdicts and cause.get("id") in row.causes
        same_in_all += same
        watched = ", ".join([summary_of(row.verdicts), summary_of(row.causes)])
        print(line([case.name, watched, summary_of(inspected), f"{same} of {runs}", summary_of(doubts)]), flush=True)
    print(f"\n{same_in_all} of {runs * len(cases)} inspections said what the watch said, of {len(cases)} cases.")
    return same_in_all == runs * len(cases)


def main() -> int:
    """Returns the exit code."""
    what, runs, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    harness.become_subreaper()
    if what == "controls":
        return 0 if print_controls(runs, chosen_controls(names)) else 1
    if what == "inspections":
        return 0 if print_inspections(runs, chosen(names)) else 1
    return 0 if print_cases(runs, chosen(names)) else 1


if __name__ == "__main__":
    sys.exit(main())
