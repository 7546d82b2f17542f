"""Runs a case of the corpus under mprun and lists what is wrong with the report."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import corpus
import harness
from corpus import Case
from harness import Run, Running

GAVE_UP = 124  # mprun's exit code for a program that it ended because it would not have finished
TERMINATED = 128 + signal.SIGTERM  # of a program after `--`


@dataclass(frozen=True)
class Found:
    """One case that has run under mprun."""

    case: Case
    run: Run
    report: dict[str, Any]  # what --hang-report wrote; empty: nothing

    @property
    def verdict(self) -> str:
        return self.report.get("verdict", "none")

    @property
    def cause(self) -> str:
        return self.report.get("cause", {}).get("id", "none")

    @property
    def join(self) -> str:
        """In human-readable form: with the line of the program, if it is known."""
        join = self.report.get("join") or {}
        where = f" at {Path(join['file']).name}:{join['line']}" if join.get("file") else ""
        return join.get("call", "none") + where


def start(runner: harness.Runner, case: Case, folder: Path) -> tuple[Running, Path]:
    """Runs the case in `folder` so that mprun ends it; returns also where the report will be."""
    report = folder / "hang.json"
    options = ["--on-hang", "kill", "--hang-report", report]
    if "stalled" in case.verdicts:
        options += ["--stall-seconds", str(corpus.STALL_SECONDS)]
    environment = case.environment(folder)
    argv = case.argv(folder)
    return runner.start(*options, "--", *argv, output=False, env=environment), report


def finish(case: Case, running: Running, report: Path, timeout: float = 120) -> Found:
    """Waits until mprun has ended the case, or reported it where it ends nothing."""
    if not case.is_ended:
        harness.wait_until(lambda: report.is_file() or running.process.poll() is not None, timeout)
        running.send_signal(signal.SIGTERM)
    run = running.wait(timeout)
    text = report.read_text(encoding="utf-8") if report.is_file() else "{}"
    return Found(case, run, json.loads(text))


def complaints(found: Found) -> Iterator[str]:
    """Everything that is wrong."""
    if found.run.returncode != (GAVE_UP if found.case.is_ended else TERMINATED):
        yield f"mprun ended with {found.run.returncode}"
    if "done" in found.run.stdout:
        yield "the program came to its end"
    yield from (f"left: {survivor}" for survivor in found.run.survivors)
    if not found.report:
        yield "there is no report"
        return
    if found.verdict not in found.case.verdicts:
        yield f"the verdict is {found.verdict}, not {' or '.join(found.case.verdicts)}"
    yield from complaints_of_cause(found)
    yield from complaints_of_lines(found)
    if "mprun" not in found.run.stderr:
        yield "nothing is printed at the terminal"


def complaints_of_cause(found: Found) -> Iterator[str]:
    """The cause is the right one, is explained, and names the dead process if there is one."""
    if found.case.causes and found.cause not in found.case.causes:
        yield f"the cause is {found.cause}, not {' or '.join(found.case.causes)}"
    cause = found.report.get("cause", {})
    if not cause.get("explanation"):
        yield "the cause is not explained"
    if found.cause != "unknown" and not cause.get("fix"):
        yield "there is no advice"
    if found.case.program == "value_lock_left.py" and "has ended" not in cause["explanation"]:
        yield "it does not say that one that has ended may have the lock"
    if found.cause == "worker-died":
        deaths = found.report.get("deaths", [])
        if not any(death.get("pid") and death.get("at") for death in deaths):
            yield f"no pid and time of the dead: {deaths}"
        if "killed" in found.case.program and 9 not in [death.get("signal") for death in deaths]:
            yield f"SIGKILL is not named: {deaths}"


def complaints_of_lines(found: Found) -> Iterator[str]:
    """The join has the right name and line, and the stacks show the line where a thread is stuck."""
    case = found.case
    join = found.report.get("join") or {}
    if case.joins and not str(join.get("call")).endswith(case.joins):
        yield f"the join is {found.join}, not {' or '.join(case.joins)}"
    if not case.is_python():
        return
    line = case.line_of(corpus.HANGS_HERE)
    if case.joins and line and not is_at(join, case, line):
        yield f"the join is at {join.get('file')}:{join.get('line')}, not in line {line}"
    stuck = case.line_of(corpus.BLOCKS_HERE)
    if stuck and not any(is_at(frame, case, stuck) for frame in python_frames(found.report)):
        yield f"no stack shows line {stuck}"


def is_at(place: dict[str, Any], case: Case, line: int) -> bool:
    return Path(str(place.get("file"))).name == case.program and place.get("line") == line


def python_frames(report: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for process in report.get("processes", []):
        for thread in process.get("threads", []):
            yield from thread.get("python", [])
