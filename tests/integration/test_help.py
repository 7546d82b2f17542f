"""mprun help: parts of the manual pages."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness import RunCommand


@pytest.fixture
def help_of(run_mprun: RunCommand, tmp_path: Path):
    """What `mprun help TOPIC` hands to man(1), for which a script stands in that prints its arguments and input."""
    man = tmp_path / "bin" / "man"
    man.parent.mkdir()
    man.write_text('#!/bin/sh\necho "man $*"\ncat\n', encoding="utf-8")
    man.chmod(0o755)
    path = f"{man.parent}{os.pathsep}{os.environ['PATH']}"
    return lambda topic: run_mprun("help", topic, env={"PATH": path}).check().stdout


def test_topics_are_listed(run_mprun: RunCommand) -> None:
    topics = [line.strip() for line in run_mprun("help").check().stdout.splitlines() if line.startswith("  ")]
    assert {"hangs", "exit-status", "signals", "tensors", "the-inspection-of-a-process"} <= set(topics)
    assert topics == sorted(set(topics)) and "name" not in topics


def test_every_topic_of_the_list_is_found(run_mprun: RunCommand, help_of) -> None:
    for line in run_mprun("help").check().stdout.splitlines():
        if line.startswith("  "):
            assert help_of(line.strip()).startswith("man -l -\n.Dd "), line


@pytest.mark.parametrize(
    ("topic", "heading", "text"),
    [
        ("hangs", ".Sh HANGS, of mprun(1)", "finds out what could wake each"),
        ("Rights", ".Sh Rights, of mprun(1)", "CAP_SYS_PTRACE"),
        ("inspect", ".Sh Ways to start a job, of mprun(1)", ".It Nm Cm inspect"),
        ("retries", ".Sh Tasks, of mprun-job(5)", ".It Fl -retries"),
        ("retries", ".Sh OPTIONS, of mprun(1)", "Extra attempts of a task"),
        ("n", ".Sh OPTIONS, of mprun(1)", ".It Fl n , Fl -processes"),
        ("limits.task_seconds", ".Sh Limits, of mprun-job(5)", "attempt"),
        ("124", ".Sh EXIT STATUS, of mprun(1)", "time limit"),
        ("130", ".Sh EXIT STATUS, of mprun(1)", "Stopped by signal N"),
        ("NO_COLOR", ".Sh ENVIRONMENT, of mprun(1)", ".It Ev NO_COLOR"),
    ],
)
def test_parts(topic: str, heading: str, text: str, help_of) -> None:
    page = help_of(topic)
    assert heading in page and text in page


def test_a_part_is_not_the_whole_page(help_of) -> None:
    assert len(help_of("124").splitlines()) < 20
    assert ".Sh SIGNALS" not in help_of("hangs")


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
@pytest.mark.parametrize("topic", ["hangs", "retries", "inspect"])
def test_parts_are_whole_pages(topic: str, help_of, tmp_path: Path) -> None:
    """mandoc finds no broken list and no unknown macro."""
    import subprocess

    page = tmp_path / "part.1"
    page.write_text(help_of(topic).partition("\n")[2], encoding="utf-8")
    run = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True, check=False)
    assert run.stdout == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["retrys"], '"retrys"\n  did you mean "retries"?\n  `mprun help` lists the topics'),
        (["hangs", "signals"], "help: found signals, allowed: options and TOPIC"),
        (["--json", "hangs"], "--json is only valid with"),
    ],
)
def test_what_is_refused(words: list[str], message: str, run_mprun: RunCommand) -> None:
    assert message in run_mprun("help", *words).check(2).stderr


def test_without_man(run_mprun: RunCommand, tmp_path: Path) -> None:
    run = run_mprun("help", "hangs", env={"PATH": str(tmp_path)}).check(2)
    assert "install man-db" in run.stderr
