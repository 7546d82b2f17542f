"""mprun report: the contents of a run directory, human-readable and for other tools."""

from __future__ import annotations

import json
import os
import re
import signal
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import harness
import pytest
from harness import RunCommand, StartCommand

JOB = """
import os
import threading
import time


def run(number):
    if number == 5 and not os.path.exists("died"):
        open("died", "w").close()
        os.kill(os.getpid(), 9)
    if number == 6 and not os.path.exists("hung"):
        open("hung", "w").close()
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    if number % 10 == 3:
        raise ValueError(f"<no & never> {number}\\x01")
    time.sleep(0.05 if number == 7 else 0)
    return number
"""
SPEC = {"script": "job.py:run", "processes": 2, "chunk_size": 1, "inputs": {"range": 30}}


@pytest.fixture
def run_dir(run_job: RunCommand) -> Path:
    return run_job(SPEC, scripts={"job.py": JOB}).check(1).run_dir


def test_text(run_dir: Path, run_mprun: RunCommand) -> None:
    text = run_mprun("report", run_dir).check().stdout
    for pattern in (
        r"^\S+: 27 ok, 3 failed, 2 retried of 30 tasks in ",
        r"^exit code 1: at least one task failed",
        r"^workers: 2, busy \d+% of the ",
        r"^  worker 1 +\d+% busy  \d+ attempts in ",
        r"^times of tasks: shortest \S+, median \S+, 95% below \S+, longest \S+$",
        r"^  task 6 .* attempt 1, tried again$",
        r"^  3 x ValueError: <no & never> 3. \(task 3, File ",
        r"^  task 5 \(worker \d, attempt 1\): .*signal 9",
        r"^  worker \d \(pid \d+\): signal 9 \(Killed\)$",
        r"^  partial-deadlock, cause lock-cycle: .*/hangs/1\.txt$",
    ):
        assert re.search(pattern, text, re.MULTILINE), (pattern, text)
    hang = re.search(r"(/.*hangs/1\.txt)$", text, re.MULTILINE)
    assert hang is not None and Path(hang[1]).exists()


def test_the_timeline_has_every_attempt(run_dir: Path, run_mprun: RunCommand, tmp_path: Path) -> None:
    assert run_mprun("report", "--trace", "t.json", run_dir).check().stdout == ""
    events = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["traceEvents"]
    names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names == {"worker 0", "worker 1", "host"}
    spans = [event for event in events if event["ph"] == "X" and event["cat"] == "task"]
    ends = [(span["args"]["task"], span["args"]["attempt"], span["args"]["end"]) for span in spans]
    assert len(ends) == len(set(ends)) == 32
    assert {(5, 1, "tried again"), (5, 2, "ok"), (6, 1, "tried again"), (3, 1, "failed")} <= set(ends)
    assert min(event["ts"] for event in events if event["ph"] == "X") == 0
    for worker in (0, 1):  # a worker does one thing at a time; its own clock and ours may differ by a little
        own = sorted((span["ts"], span["dur"]) for span in spans if span["tid"] == worker)
        for (start, duration), (following, _) in zip(own, own[1:]):
            assert following >= start + duration - 50_000, own


def test_junit_has_every_task(run_dir: Path, run_mprun: RunCommand, tmp_path: Path) -> None:
    run_mprun("report", "--junit", "j.xml", run_dir).check()
    suites = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert suites.attrib["tests"] == "30" and suites.attrib["failures"] == "3"
    cases = suites.findall("testsuite/testcase")
    assert [case.attrib["name"] for case in cases] == [f"task {number}" for number in range(30)]
    failed = {case.attrib["name"]: case.find("failure") for case in cases if len(case)}
    assert list(failed) == ["task 3", "task 13", "task 23"]
    failure = failed["task 13"]
    assert failure is not None and failure.attrib["type"] == "ValueError"
    assert failure.attrib["message"] == "<no & never> 13?"
    assert 'raise ValueError(f"<no & never>' in (failure.text or "")


def test_a_job_writes_junit_itself(run_job: RunCommand, run_mprun: RunCommand, tmp_path: Path) -> None:
    """At its end, failed or not, and exactly what mprun report would write; where it cannot, nothing is launched."""
    run = run_job({**SPEC, "start_method": "spawn"}, "--junit", "own.xml", scripts={"job.py": JOB}).check(1)
    run_mprun("report", "--junit", "report.xml", run.run_dir).check()
    assert (tmp_path / "own.xml").read_bytes() == (tmp_path / "report.xml").read_bytes()
    refused = run_job(SPEC, "--junit", "no/such/folder.xml", scripts={"job.py": JOB}).check(2)
    assert "--junit: no/such/folder.xml cannot be written" in refused.stderr and not refused.run_dir.exists()


def test_events_of_a_worker_do_not_overlap(run_job: RunCommand, run_mprun: RunCommand, tmp_path: Path) -> None:
    """Perfetto drops those that do, even by a microsecond."""
    run = run_job({"script": "job.py:run", "processes": 2, "inputs": {"range": 3000}},
                  scripts={"job.py": "def run(number):\n    return sum(range(number % 100))\n"}).check()  # fmt: skip
    run_mprun("report", "--trace", "t.json", run.run_dir).check()
    events = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert len([span for span in spans if span["cat"] == "task"]) == 3000
    for track in {(span["pid"], span["tid"]) for span in spans}:
        own = sorted((span["ts"], span["ts"] + span["dur"]) for span in spans if (span["pid"], span["tid"]) == track)
        assert all(end <= following for (_, end), (following, _) in zip(own, own[1:]))


STARTS = """
def setup():
    pass

def worker_setup():
    pass

def run(number):
    return number
"""


@pytest.mark.parametrize(
    ("start_method", "of_host", "of_worker"),
    [
        ("fork", ["starting Python", "importing job.py", "setup()"], ["forking", "worker_setup()"]),
        ("spawn", [], ["starting Python", "importing job.py", "setup()", "worker_setup()"]),
        ("forkserver", ["starting Python"], ["forking", "importing job.py", "setup()", "worker_setup()"]),
    ],
)
def test_the_timeline_has_the_starts(
    run_job: RunCommand, run_mprun: RunCommand, tmp_path: Path, start_method: str, of_host: list[str],
    of_worker: list[str],
) -> None:  # fmt: skip
    """One phase after the other, and all of them before the first task."""
    spec = {**SPEC, "processes": 1, "setup": "setup", "worker_setup": "worker_setup", "start_method": start_method}
    run = run_job(spec, scripts={"job.py": STARTS}).check()
    run_mprun("report", "--trace", "t.json", run.run_dir).check()
    events = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["traceEvents"]
    starts = sorted((e for e in events if e.get("cat") == "start"), key=lambda event: event["ts"])
    assert [e["name"] for e in starts if e["pid"] == 2] == of_host
    assert [e["name"] for e in starts if e["pid"] == 1] == of_worker
    for one, following in zip(starts, starts[1:]):
        gap = following["ts"] - one["ts"] - one["dur"]
        assert gap >= 0 and (gap <= 1 or one["pid"] != following["pid"]), starts  # microseconds
    first_task = min(event["ts"] for event in events if event.get("cat") == "task")
    assert starts[-1]["ts"] + starts[-1]["dur"] <= first_task


FLOOD = """
import gc
from mprun import protocol

def worker_setup():
    [channels] = [found for found in gc.get_objects() if isinstance(found, protocol.Channels)]
    for _ in range(20_000):
        protocol.report_stage(channels, "x" * 1000)

def run(number):
    return number
"""


def test_a_worker_cannot_fill_the_journal_with_stages(run_job: RunCommand) -> None:
    spec = {**SPEC, "processes": 1, "worker_setup": "worker_setup", "start_method": "spawn"}
    run = run_job(spec, scripts={"job.py": FLOOD}).check()
    stages = [line for line in (run.run_dir / "journal.jsonl").read_text().splitlines() if line.startswith('{"stage"')]
    assert len(stages) == 16 and all(len(line) < 400 for line in stages)
    assert json.loads(stages[-1])["stage"]["text"] == ""  # it is known when the start was over


def test_a_run_that_was_killed(start_job: StartCommand, run_mprun: RunCommand, tmp_path: Path) -> None:
    """It shows the results so far, and how to continue."""
    script = """
import os, time

def run(number):
    while number == 4 and not os.path.exists("go"):
        time.sleep(0.01)
    return number
"""
    running = start_job({**SPEC, "processes": 1}, scripts={"job.py": script})
    results = running.run_dir / "results.jsonl"
    harness.wait_until(lambda: results.exists() and len(results.read_bytes().splitlines()) == 4, what="4 results")
    still = run_mprun("report", running.run_dir).check().stdout
    supervisor = next(child for child in running.children() if child.ppid == running.pid)
    os.kill(supervisor.pid, signal.SIGKILL)
    running.wait()
    killed = run_mprun("report", running.run_dir).check().stdout
    for text in (still, killed):
        assert re.search(r"^\S+: 4 ok, 0 failed$", text, re.MULTILINE), text
        assert f"mprun resume {running.run_dir}" in text


def test_ranks_and_commands(run_job: RunCommand, run_mprun: RunCommand) -> None:
    ranks = run_job({"script": "r.py", "processes": 2}, scripts={"r.py": "print()\n"}).check()
    assert ": 2 ok, 0 failed of 2 tasks" in run_mprun("report", ranks.run_dir).check().stdout
    spec: dict[str, Any] = {"command": ["sh", "-c", "exit {}"], "inputs": {"range": 3}, "processes": 2}
    commands = run_job(spec).check(1)
    assert ": 1 ok, 2 failed of 3 tasks" in run_mprun("report", commands.run_dir).check().stdout


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (["report"], "report: RUN_DIR is required"),
        (["report", "none"], "there is no run directory"),
        (["report", "."], "is not a run directory"),
        (["report", "-n", "2", "."], "--processes 2 is only valid with a job"),
        (["--trace", "t.json", "job.json"], "--trace is only valid with `mprun report`"),
        (["--html", "page.html", "job.json"], "--html is only valid with `mprun report`"),
        (["--junit", "j.xml", "--", "true"], "--junit is only valid with `mprun run`, `mprun resume` or `mprun report`"),
    ],
)
def test_wrong_words(words: list[str], pattern: str, run_mprun: RunCommand) -> None:
    assert pattern in run_mprun(*words).check(2).stderr


def test_a_file_that_cannot_be_written(run_dir: Path, run_mprun: RunCommand) -> None:
    for option in ("--trace", "--html", "--junit"):
        refused = run_mprun("report", option, "no/such/file", run_dir).check(2)
        assert option in refused.stderr and "No such file or directory" in refused.stderr
