"""mprun.log of a run directory: levels, components, formats, and what `-v` and `-d` have in common with it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from harness import RunCommand

SCRIPT = """
import os


def setup():
    pass


def run(number):
    if number == 3:
        raise ValueError("three")
    return number


def descriptors(number):
    folder = "/proc/self/fd"
    return [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder) if os.path.exists(f"{folder}/{fd}")]
"""
SPEC = {"script": "job.py:run", "setup": "setup", "processes": 2, "inputs": {"range": 5}, "retries": 0}
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d (\w+) +(\w+) +(.*)")


def lines(run_dir: Path) -> list[tuple[str, str, str]]:
    """Level, component and text of each line; further lines of a text are left out."""
    matches = map(LINE.fullmatch, (run_dir / "mprun.log").read_text(encoding="utf-8").splitlines())
    return [(match[1], match[2], match[3]) for match in matches if match]


def run_it(run_job: RunCommand, *options: str, env: dict[str, str] | None = None, **spec: Any) -> Any:
    return run_job({**SPEC, **spec}, *options, scripts={"job.py": SCRIPT}, env=env).check(1)


def test_a_job_has_a_log(run_job: RunCommand) -> None:
    run = run_it(run_job)
    found = lines(run.run_dir)
    assert found[0][:2] == ("info", "record")
    assert re.match(r"mprun \S+.*, pid \d+ on \S+ \(Linux \S+ \S+\), begins job with 2 processes in /", found[0][2])
    assert ("info", "launch") in {entry[:2] for entry in found}
    assert any(text.startswith("task 3 failed: ValueError: three (") for _, _, text in found)
    assert found[-1] == ("info", "record", "ends with exit code 1: 4 ok, 1 failed, 0 cancelled, 0 retried")
    assert {level for level, _, _ in found} == {"info"}


def test_verbose_prints_what_the_log_has(run_job: RunCommand) -> None:
    run = run_it(run_job, "-v")
    logged = {text for _, component, text in lines(run.run_dir) if component == "launch"}
    printed = {line for line in run.stderr.splitlines() if re.match(r"(worker \d|host) ", line)}
    assert printed == logged
    assert len(printed) == 6  # two workers and a host: start and end


def test_levels_of_all_and_of_components(run_job: RunCommand) -> None:
    run = run_it(run_job, "--log-level", "error,launch=debug")
    assert {component for _, component, _ in lines(run.run_dir)} == {"launch"}
    texts = [text for _, _, text in lines(run.run_dir)]
    assert "host: importing job.py" in texts
    assert "host: setup()" in texts
    assert "worker 0 is ready" in texts or "worker 1 is ready" in texts


def test_the_option_overrides_the_variable(run_job: RunCommand) -> None:
    run = run_it(run_job, "--log-level", "launch=off", env={"MPRUN_LOG": "off,launch=debug,watch=trace"})
    assert {component for _, component, _ in lines(run.run_dir)} <= {"watch"}


def test_debug_events_has_the_steps_of_the_trace(run_job: RunCommand) -> None:
    run = run_it(run_job, "-d", "events", env={"MPRUN_LOG": "off,schedule=trace"})
    log = (run.run_dir / "mprun.log").read_text(encoding="utf-8")
    steps = (run.run_dir / "events.log").read_text(encoding="utf-8").splitlines()[2:]
    assert any("InputsRead" in step for step in steps)
    for step in steps:
        assert step.strip() in log


def test_json_lines(run_job: RunCommand) -> None:
    run = run_it(run_job, "--log-format", "json", "--log-level", "debug")
    text = (run.run_dir / "mprun.log").read_text(encoding="utf-8")
    entries = [json.loads(line) for line in text.splitlines()]
    assert all(list(entry) == ["time", "level", "component", "text"] for entry in entries)
    assert {"record", "launch", "schedule"} <= {entry["component"] for entry in entries}


@pytest.mark.parametrize(
    ("options", "variable", "message"),
    [
        (["--log-level", "loud"], "", "--log-level: found loud, allowed levels: trace, debug, info, warning, error, off"),
        (["--log-level", "io=info"], "",
         "--log-level: found io=info, allowed components: launch, schedule, watch, record, cluster"),
        (["--log-format", "xml"], "", "--log-format: found xml, allowed: text, json"),
        ([], "watch=loud", "MPRUN_LOG: found watch=loud, allowed levels: trace, debug, info, warning, error, off"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused(run_job: RunCommand, options: list[str], variable: str, message: str) -> None:
    run = run_job(SPEC, *options, scripts={"job.py": SCRIPT}, env={"MPRUN_LOG": variable}).check(2)
    assert run.stderr.splitlines()[0] == f"mprun: {message}"
    assert not run.run_dir.exists()


def test_a_resumed_run_goes_on_with_its_log(run_job: RunCommand, run_mprun: RunCommand) -> None:
    run = run_it(run_job)
    run_mprun("resume", "--retry-failed", run.run_dir).check(1)
    assert [text[:5] for _, component, text in lines(run.run_dir) if component == "record"].count("mprun") == 2


def test_no_process_of_the_job_has_the_log_open(run_job: RunCommand) -> None:
    for method in ("fork", "spawn", "forkserver"):
        run = run_job({**SPEC, "script": "job.py:descriptors", "start_method": method}, scripts={"job.py": SCRIPT}).check()
        assert "mprun.log" not in (run.run_dir / "results.jsonl").read_text(encoding="utf-8")
        assert os.path.getsize(run.run_dir / "mprun.log") > 0
