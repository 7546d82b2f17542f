"""The stacks of every Python of this machine that mprun can read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import harness
from compiled import CASES
from harness import RunCommand

OLDEST, NEWEST = (3, 9), (3, 15)
KNOWN = {version: path for version, path in harness.pythons().items() if OLDEST <= version <= NEWEST}

PROGRAM = """
import multiprocessing, queue

class Runner:
    @staticmethod
    def take(items):
        return items.get()

    @classmethod
    def of_class(cls):
        return cls.take(
            queue.Queue())

    @property
    def first(self):
        def inner():
            return self.of_class()
        return inner()

def work():
    Runner().first

child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.join()
"""
# The lines at which they are: a call over several lines is at its first one since 3.8.
STACK = [
    ("Condition.wait", None),
    ("Queue.get", None),
    ("Runner.take", 7),
    ("Runner.of_class", 11),
    ("Runner.first.<locals>.inner", 17),
    ("Runner.first", 18),
    ("work", 21),
    ("BaseProcess.run", None),
]

each_python = pytest.mark.parametrize(
    "python", [pytest.param(path, id=".".join(map(str, version))) for version, path in KNOWN.items()]
)


@each_python
def test_names_functions_and_lines(run_mprun: RunCommand, tmp_path: Path, python: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    run_mprun("--on-hang", "kill", "--hang-report", "hang.json", "--", python, "program.py").check(124)
    report = json.loads((tmp_path / "hang.json").read_text(encoding="utf-8"))
    assert report["join"]["call"] == "multiprocessing.Process.join", report
    assert report["cause"]["id"] == "never-notified", report
    child = report["processes"][-1]["threads"][0]["python"]
    assert [(frame["function"], frame["line"]) for frame in child[2:7]] == STACK[2:7], child
    assert [frame["function"] for frame in child[:8]] == [function for function, _line in STACK], child


@each_python
def test_sleep_between_looks_is_no_poll(run_mprun: RunCommand, tmp_path: Path, python: str) -> None:
    """Until 3.10, Python sleeps by select(), which looks like a poll of nothing."""
    program = str(CASES / "poll_before_read.py")
    options = ["--on-hang", "kill", "--hang-report", "hang.json", "--stall-seconds", "3"]
    run_mprun(*options, "--", python, program).check(124)
    report = json.loads((tmp_path / "hang.json").read_text(encoding="utf-8"))
    assert report["cause"]["id"] in ("queue-not-drained", "polls-in-vain"), report
