"""mprun ends a program with a stuck part only if it can never continue: one that copes is only reported."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import harness
from compiled import build
from found import GAVE_UP
from harness import Run, Runner

PROGRAMS = Path(__file__).resolve().parent / "coping"
LIMIT = 4.0  # seconds, well above the time within which a hang is proved


@dataclass(frozen=True)
class Coping:
    """One program that prints "done" at its end, after it has waited for the stuck part."""

    program: str
    more: tuple[str, ...] = ()
    call: str | None = None  # the call by which it copes, as the report names it
    limit: bool = True  # the report knows when that call ends

    @property
    def name(self) -> str:
        return "-".join([Path(self.program).stem, *self.more])

    def argv(self, folder: Path, seconds: float) -> list[str]:
        """The command; builds it in `folder` first if need be."""
        source = PROGRAMS / self.program
        if source.suffix == ".c":
            command = [str(build(source, folder))]
        else:
            command = ["sh" if source.suffix == ".sh" else harness.MPRUN_PYTHON, str(source)]
        return [*command, str(seconds), *self.more]

    def line_of(self, mark: str) -> int | None:
        """The line with this comment."""
        lines = (PROGRAMS / self.program).read_text(encoding="utf-8").splitlines()
        return next((n for n, line in enumerate(lines, 1) if line.endswith(f"# {mark}")), None)


COPING = [
    Coping("communicate_timeout.py", call="subprocess.Popen.communicate"),
    Coping("process_join_timeout.py", call="multiprocessing.Process.join"),
    Coping("pool_get_timeout.py", call="multiprocessing.pool.AsyncResult.get"),
    Coping("polls_with_sleep.py"),
    Coping("middle_copes.py", call="subprocess.Popen.communicate"),
    Coping("timer_kills.py"),
    Coping("helper_may_wake.py", limit=False),
    Coping("timeout_command.sh", limit=False),
    Coping("limited_waits.c", ("poll",)),
    Coping("limited_waits.c", ("sigtimedwait",)),
    Coping("limited_waits.c", ("nanosleep",)),
]


def run_it(runner: Runner, folder: Path, program: Coping, seconds: float = LIMIT) -> Run:
    """Runs it under mprun, which ends hung programs."""
    options = ["--on-hang", "kill", "--hang-report", folder / "hang.json"]
    return runner.start(*options, "--", *program.argv(folder, seconds), output=False).wait(120)


def report_in(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "hang.json").read_text(encoding="utf-8"))
    return report


@pytest.mark.parametrize("program", COPING, ids=lambda program: program.name)
def test_copes_under_mprun(runner: Runner, tmp_path: Path, program: Coping) -> None:
    """It is reported, once, and ends as it does without mprun."""
    run = run_it(runner, tmp_path, program).check(0)
    assert run.stdout == "done\n"
    assert run.stderr.count("mprun: hang proved (partial-deadlock)") == 1, run
    report = report_in(tmp_path)
    assert report["cause"]["id"] == "lock-cycle", report
    words = " ".join(run.stderr.split())
    assert "the program still runs: " in words
    (runs, *_) = report["still_runs"]
    assert runs["pid"] in [process["pid"] for process in report["processes"]]
    if program.call:
        copes = PROGRAMS / ("communicate_timeout.py" if "middle" in program.name else program.program)
        line = Coping(copes.name).line_of("copes here")
        assert (runs["call"], Path(runs["file"]).name, runs["line"]) == (program.call, copes.name, line)
        assert f"{program.call} at " in words
    if program.limit:
        assert 0 <= runs["ends_in_seconds"] <= LIMIT, runs
        if runs["ends_in_seconds"] >= 0.1:  # no wait of a loop that is over at once
            assert " s from now" in words
    else:
        assert runs["ends_in_seconds"] is None


def test_a_program_that_stops_coping_is_ended(runner: Runner, tmp_path: Path) -> None:
    """When its limits have passed it waits forever: that is reported again, and ends it."""
    run = run_it(runner, tmp_path, Coping("waits_at_last.py"), 1.5).check(GAVE_UP)
    assert "done" not in run.stdout
    assert run.stderr.count("hang proved (partial-deadlock)") == 1, run
    assert run.stderr.count("hang proved (deadlock)") == 1, run
    report = report_in(tmp_path)
    assert report["join"]["line"] == Coping("waits_at_last.py").line_of("hangs here")
    assert "still_runs" not in report


@pytest.mark.parametrize("middle", ["alone", "busy", "asleep"])
def test_waits_without_a_limit_reach_the_root(runner: Runner, tmp_path: Path, middle: str) -> None:
    """A process that waits for the stuck one is stuck, and so is one that waits for that process."""
    run = run_it(runner, tmp_path, Coping("joins_middle.py", (middle,))).check(GAVE_UP)
    assert "done" not in run.stdout
    assert report_in(tmp_path)["join"]["line"] == Coping("joins_middle.py").line_of("hangs here")


def test_every_program_is_run() -> None:
    helpers = {"stuck_child.py", "waits_at_last.py", "joins_middle.py"}
    sources = {path.name for path in PROGRAMS.iterdir() if path.is_file()}
    assert sources == {program.program for program in COPING} | helpers
