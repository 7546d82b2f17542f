"""Ctrl-C, SIGTERM and similar signals, SIGTSTP and SIGCONT, sent to mprun's pid."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import Running, StartCommand

WAITS = """
import os
import signal

from events import mark, wait_for


def run(number):
    mark("began", number)
    wait_for("go", seconds=60)
    mark("ended", number)
    return number
"""

RANKS = """
import mprun
from events import mark, wait_for

mark("began", mprun.rank())
wait_for("go", seconds=60)
mark("ended", mprun.rank())
mprun.result(mprun.rank())
"""

COMMAND = "echo {} >>began; until test -e go; do sleep 0.01; done; echo {} >>ended"

StartWaiting = Callable[..., Running]


@pytest.fixture(params=[*harness.START_METHODS, "ranks", "command"])
def start_waiting(
    request: pytest.FixtureRequest, start_job: StartCommand, tmp_path: Path
) -> StartWaiting:
    """start_waiting(*options, grace=60) -> a job of which two tasks run, until the file `go` is there."""

    def start(
        *options: str,
        grace: float = 60,
        preexec_fn: Callable[[], Any] | None = None,
        **limits: float,
    ) -> Running:
        spec: dict[str, Any] = {"processes": 2, "limits": {"grace_seconds": grace, **limits}}
        if request.param == "command":
            spec.update(command=["sh", "-c", COMMAND], inputs={"range": 6})
        elif request.param == "ranks":
            spec.update(script="ranks.py")
        else:
            spec.update(
                script="job.py:run",
                start_method=request.param,
                chunk_size=3,
                inputs={"range": 6},
            )
        scripts = {"job.py": WAITS, "ranks.py": RANKS, "events.py": harness.EVENTS}
        running = start_job(spec, *options, scripts=scripts, process_group=0, preexec_fn=preexec_fn)
        harness.wait_until(lambda: len(harness.marks(tmp_path / "began")) == 2, what="two tasks")
        return running

    return start


def statuses(running: Running) -> list[str]:
    """Of the tasks that ended, by number."""
    return [result["status"] for result in running.wait().results()]


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)],
)
def test_the_first_signal_lets_running_tasks_finish(
    start_waiting: StartWaiting, tmp_path: Path, number: int, code: int
) -> None:
    """No more tasks are handed out; results are kept."""
    running = start_waiting()
    running.send_signal(number)
    harness.wait_until(lambda: "stopping" in running.stderr, what="mprun to say that it stops")
    assert running.process.poll() is None
    (tmp_path / "go").write_text("\n")
    run = running.wait(20).check(code)
    assert statuses(running) == ["ok", "ok"]
    began = harness.marks(tmp_path / "began")
    assert len(began) == 2, "a task began after the signal"
    assert sorted(harness.marks(tmp_path / "ended")) == sorted(began)
    assert run.summary()["exit_code"] == code
    assert run.summary()["counts"]["ok"] == 2


@pytest.mark.parametrize("start_waiting", harness.START_METHODS, indirect=True)
def test_queued_tasks_are_taken_back_before_the_stop_is_reported(
    start_waiting: StartWaiting, tmp_path: Path
) -> None:
    """Once mprun has said that it stops, no other task will begin."""
    running = start_waiting("--explain")
    running.send_signal(signal.SIGINT)
    harness.wait_until(lambda: "stopping: " in running.stderr, what="mprun to say that it stops")
    assert running.stderr.partition("stopping: ")[0].count("took 2 queued tasks back") == 2
    (tmp_path / "go").write_text("\n")
    running.wait(20).check(130)


def test_grace_after_the_first_signal(start_waiting: StartWaiting, tmp_path: Path) -> None:
    """Tasks that do not finish within it are ended and named."""
    running = start_waiting(grace=0.4)
    sent = time.monotonic()
    running.send_signal(signal.SIGINT)
    run = running.wait(20).check(130)
    assert time.monotonic() - sent >= 0.4
    assert statuses(running) == ["cancelled", "cancelled"]
    assert all("interrupted" in result["error"]["message"] for result in run.results())
    assert harness.marks(tmp_path / "ended") == []
    assert run.summary()["counts"]["cancelled"] == 2


@pytest.mark.parametrize("numbers", [("SIGINT", "SIGINT"), ("SIGTERM", "SIGINT")], ids="+".join)
def test_the_second_signal_kills(
    start_waiting: StartWaiting, tmp_path: Path, numbers: tuple[str, str]
) -> None:
    """At once, whatever grace remains; the exit code is that of the first signal."""
    first, second = (signal.Signals[name] for name in numbers)
    running = start_waiting(grace=60)
    running.send_signal(first)
    harness.wait_until(lambda: "stopping" in running.stderr, what="mprun to say that it stops")
    running.send_signal(second)
    running.wait(20).check(128 + first)
    assert statuses(running) == ["cancelled", "cancelled"]


def test_a_signal_to_the_whole_group_counts_once(
    start_waiting: StartWaiting, tmp_path: Path
) -> None:
    """As a terminal sends it: running tasks do not receive it and finish."""
    running = start_waiting()
    os.killpg(running.pid, signal.SIGINT)
    harness.wait_until(lambda: "stopping" in running.stderr, what="mprun to say that it stops")
    (tmp_path / "go").write_text("\n")
    running.wait(20).check(130)
    assert statuses(running) == ["ok", "ok"]


@pytest.mark.parametrize("start_waiting", ["command"], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_signals_that_the_caller_ignores_stay_ignored(
    start_waiting: StartWaiting, tmp_path: Path, number: int
) -> None:
    """`nohup mprun`, and `mprun &` in a script, which Ctrl-C is not meant for. SIGUSR1 is mprun's own."""
    running = start_waiting(preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
    running.send_signal(number)
    running.send_signal(signal.SIGUSR1)
    harness.wait_until(lambda: "thread" in running.stderr, what="mprun to show its processes")
    (tmp_path / "go").write_text("\n")
    running.wait(20).check()
    assert set(statuses(running)) == {"ok"}
    assert "stopping" not in running.stderr


def test_stop_and_continue(start_waiting: StartWaiting, tmp_path: Path) -> None:
    """SIGTSTP stops every process of the job, SIGCONT continues all of them."""
    running = start_waiting()

    def states() -> dict[int, str]:
        family = [*harness.descendants(running.pid), harness.list_processes()[running.pid]]
        return {process.pid: process.state for process in family if process.alive}

    def stopped() -> bool:
        """True if each is stopped, or waits in a vfork (D) for a child that was stopped before its exec."""
        found = set(states().values())
        return "T" in found and found <= {"T", "D"}

    running.send_signal(signal.SIGTSTP)
    harness.wait_until(stopped, what=f"all to stop: {states()}")
    assert len(states()) >= 4
    running.send_signal(signal.SIGCONT)
    harness.wait_until(lambda: "T" not in states().values(), what=f"all to go on: {states()}")
    (tmp_path / "go").write_text("\n")
    running.wait(20).check()
    assert set(statuses(running)) == {"ok"}


def test_limits_do_not_count_stopped_time(start_waiting: StartWaiting, tmp_path: Path) -> None:
    running = start_waiting(task_seconds=4.5, job_seconds=4.9)
    running.send_signal(signal.SIGTSTP)
    harness.wait_until(
        lambda: harness.list_processes()[running.pid].state == "T", what="mprun to stop"
    )
    time.sleep(5)  # longer than the limit, as the test needs
    running.send_signal(signal.SIGCONT)
    (tmp_path / "go").write_text("\n")
    run = running.wait(20).check()
    assert {(result["status"], result["attempt"]) for result in run.results()} == {("ok", 1)}


def test_a_signal_while_starting(start_job: StartCommand, tmp_path: Path) -> None:
    """mprun does not wait for a setup that takes a minute."""
    for method in harness.START_METHODS:
        script = (
            "from events import mark, wait_for\n\n\n"
            f"def setup():\n    mark('began-{method}')\n    wait_for('never', seconds=60)\n\n\n"
            "def run(number):\n    return number\n"
        )
        running = start_job(
            {
                "script": "job.py:run",
                "setup": "setup",
                "start_method": method,
                "processes": 2,
                "limits": {"grace_seconds": 0.3},
                "inputs": {"range": 4},
            },
            scripts={"job.py": script, "events.py": harness.EVENTS},
        )
        began = tmp_path / f"began-{method}"
        harness.wait_until(lambda: harness.marks(began), what="setup")
        running.send_signal(signal.SIGINT)
        run = running.wait(10).check(130)
        assert run.summary()["counts"]["ok"] == 0


def test_a_signal_while_waiting_for_input(start_job: StartCommand) -> None:
    """Before the first input has arrived, and after."""
    for text in ("", "one\n"):
        read_end, write_end = os.pipe()
        running = start_job(
            {"command": ["echo", "{}"], "inputs": {"lines": "-"}}, stdin=read_end
        )
        try:
            os.write(write_end, text.encode())
            if text:
                journal = running.run_dir / "results.jsonl"
                harness.wait_until(lambda: harness.marks(journal), what="the first result")
                assert json.loads(harness.marks(journal)[0])["status"] == "ok"
            else:
                harness.wait_until(lambda: running.children(), what="the supervisor")
            running.send_signal(signal.SIGINT)
            running.wait(10).check(130)
        finally:
            os.close(write_end)


def test_a_signal_while_workers_end(start_job: StartCommand, tmp_path: Path) -> None:
    """Workers that do not end after their last task get only the grace, not all of join_seconds."""
    script = """
import atexit

from events import mark, wait_for


def worker_setup():
    atexit.register(lambda: (mark("ending"), wait_for("never", seconds=60)))


def run(number):
    return number
"""
    running = start_job(
        {
            "script": "job.py:run",
            "worker_setup": "worker_setup",
            "processes": 2,
            "limits": {"grace_seconds": 0.3, "join_seconds": 15},
            "inputs": {"range": 4},
        },
        scripts={"job.py": script, "events.py": harness.EVENTS},
    )
    harness.wait_until(lambda: len(harness.marks(tmp_path / "ending")) == 2, what="the last task")
    sent = time.monotonic()
    running.send_signal(signal.SIGINT)
    run = running.wait(30).check(130)
    assert time.monotonic() - sent < 8
    assert run.values() == [0, 1, 2, 3]


def test_signals_while_no_process_reads_the_results(start_job: StartCommand, tmp_path: Path) -> None:
    """`mprun --results - | less`: a full pipe on stdout must not keep mprun from handling signals."""
    read_end, write_end = os.pipe()
    running = start_job(
        {
            "script": "job.py:run",
            "processes": 2,
            "limits": {"grace_seconds": 0.3},
            "inputs": {"range": 100_000},
        },
        "--results",
        "-",
        scripts={"job.py": "def run(number):\n    return 'x' * 100\n"},
        preexec_fn=lambda: os.dup2(write_end, 1),
    )
    try:
        # While it writes: poll(2) shows that the pipe is full.
        harness.wait_until(
            lambda: not select.select([], [write_end], [], 0)[1], what="the pipe to be full"
        )
        running.send_signal(signal.SIGINT)
        running.send_signal(signal.SIGINT)
        running.process.wait(8)
        assert running.process.returncode == 130
    finally:
        os.close(read_end)
        os.close(write_end)
