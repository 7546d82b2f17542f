"""mprun resume that is killed, or whose reading fails, anywhere: nothing done is lost or done again."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import failing
import harness
from harness import Run, RunCommand, StartCommand

pytestmark = pytest.mark.xdist_group("broken resume")  # its setup is done once

KILLED = -1  # faults.h
DONE, TASKS = 8, 12
# Calls by which it reads what was done, and the errors that they fail with.
READS = {
    "open": errno.EMFILE,
    "openat": errno.EMFILE,
    "read": errno.EIO,
    "pread": errno.EIO,
    "fstat": errno.EIO,
    "stat": errno.EACCES,
    "access": errno.EACCES,
    "lseek": errno.EIO,
}
# Those by which it changes what is on the disk.
WRITES = {"write", "pwrite", "ftruncate", "rename", "unlink", "unlinkat"}

SCRIPT = f"""
import numpy

import events


def run(number):
    events.mark("ran", number)
    if number == {DONE}:
        events.wait_for("go", seconds=60)
    return {{"row": numpy.full(3, number), "number": number}}
"""

Resume = Callable[..., Run]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return failing.build_library(tmp_path_factory.mktemp("library"))


@pytest.fixture
def cut_short(start_job: StartCommand, tmp_path: Path) -> Path:
    """A run directory: the supervisor was killed when eight of twelve tasks were done."""
    spec = {"script": "job.py:run", "inputs": {"range": TASKS}, "processes": 1, "chunk_size": 1}
    running = start_job(spec, scripts={"job.py": SCRIPT, "events.py": harness.EVENTS})
    results = running.run_dir / "results.jsonl"
    harness.wait_until(lambda: results.exists() and results.read_bytes().count(b"\n") == DONE, what="results")
    supervisor = next(child for child in running.children() if child.ppid == running.pid)
    os.kill(supervisor.pid, signal.SIGKILL)
    assert running.wait().returncode == 125
    (tmp_path / "go").write_text("\n")
    return running.run_dir.rename(tmp_path / "before")


@pytest.fixture
def resume(library: Path, run_mprun: RunCommand, tmp_path: Path) -> Resume:
    """resume(plan=None, log=False): of the folder out."""

    def run(plan: str | None = None, log: bool = False) -> Run:
        env = failing.environment(library, plan, tmp_path / "faults.log" if log else None)
        return run_mprun("resume", "out", env=env)

    return run


def values(run_dir: Path) -> dict[int, int]:
    lines = [json.loads(line) for line in (run_dir / "results.jsonl").read_text().splitlines()]
    assert len({line["task"] for line in lines}) == len(lines), lines
    return {line["task"]: line["value"]["number"] for line in lines}


def logged(run_dir: Path) -> set[int]:
    """The tasks in the joblog; one is there twice if mprun was killed between the joblog and the results."""
    return {int(line.split("\t")[0]) - 1 for line in (run_dir / "joblog.tsv").read_text().splitlines()[1:]}


def check_each(
    resume: Resume, cut_short: Path, tmp_path: Path, plans: list[str], good_codes: set[int]
) -> int:
    """Resumes with each plan, then without; returns how many met their fault."""
    done = values(cut_short)
    assert len(done) == DONE
    met = 0
    for plan in plans:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        shutil.copytree(cut_short, tmp_path / "out")
        (tmp_path / "ran").write_text("")
        (tmp_path / "faults.log").unlink()
        run = resume(plan, log=True)
        met += any(line.startswith("fault ") for line in harness.marks(tmp_path / "faults.log"))
        assert run.returncode in good_codes, (plan, run)
        assert not failing.RAW.search(run.stderr), (plan, run)
        if run.returncode != 0:
            assert values(tmp_path / "out").items() >= done.items(), (plan, run)
            resume().check()
        assert values(tmp_path / "out") == {number: number for number in range(TASKS)}, (plan, run)
        assert logged(tmp_path / "out") == set(range(TASKS)), (plan, run)
        assert not set(harness.marks(tmp_path / "ran")) & set(map(str, done)), (plan, run)
    return met


def plans(
    resume: Resume, cut_short: Path, tmp_path: Path, errors: dict[str, int], callers: str
) -> list[str]:
    """A plan for each place from which one of the calls comes, where one of the callers is on the stack."""
    shutil.copytree(cut_short, tmp_path / "out")
    resume(log=True).check()
    sites = failing.read_sites(tmp_path / "faults.log")
    names = failing.names_of(sites)
    return [
        failing.plan_for(site, errors[site.call], "once")
        for site in sites
        if site.call in errors and re.search(callers, " < ".join(names[frame] for frame in site.frames))
    ]


def test_earlier_work_that_cannot_be_read(resume: Resume, cut_short: Path, tmp_path: Path) -> None:
    """A part of it is never taken for the whole."""
    callers = "plan_to_resume|plan_to_go_on|read_(earlier|results|journal)|open_earlier|reopen|TensorFiles"
    broken = plans(resume, cut_short, tmp_path, READS, rf"^(?!.*boot_id).*({callers})")
    assert check_each(resume, cut_short, tmp_path, broken, failing.GOOD_CODES) > 20


def test_a_resume_that_is_killed_anywhere(resume: Resume, cut_short: Path, tmp_path: Path) -> None:
    killed = plans(resume, cut_short, tmp_path, dict.fromkeys(WRITES, KILLED), "")
    assert check_each(resume, cut_short, tmp_path, killed, {-signal.SIGKILL, 125}) > 10
