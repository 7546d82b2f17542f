"""Deaths of workers and of mprun itself: nothing is lost, no process is left, other processes are untouched."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import harness
from harness import RunCommand, Running, StartCommand


def job(text: str) -> dict[str, str]:
    """The files of a job: job.py and the module by which tasks and tests wait for each other."""
    return {"job.py": text, "events.py": harness.EVENTS}


# --- a worker dies -----------------------------------------------------------------------------

# Task 3 waits on its first attempt until it is killed.
ONE_WAITS = """
import os
import sys
import time

from events import mark, wait_for


def run(number):
    mark(f"began-{number}", os.getpid())
    if number == 3 and (ALWAYS or os.environ["MPRUN_ATTEMPT"] == "1"):
        for line in range(30):
            print(f"line {line} of task 3", file=sys.stderr)
        mark("waits")
        wait_for("never", seconds=60)
    return number
"""


def kill_task_3(start: Callable[[], Running], folder: Path, number: int) -> float:
    """Kills its worker; returns the seconds until the task began again."""
    running = start()
    harness.wait_until(lambda: harness.marks(folder / "waits"), what="task 3 to wait")
    pid = int(harness.marks(folder / "began-3")[0])
    killed = time.monotonic()
    os.kill(pid, number)
    harness.wait_until(
        lambda: len(harness.marks(folder / "began-3")) == 2 or running.process.poll() is not None,
        what="the next attempt",
    )
    return time.monotonic() - killed


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_killed_worker_is_replaced(
    start_job: StartCommand, tmp_path: Path, start_method: str, number: int
) -> None:
    """At once: its task is tried again, tasks queued after it run once, other workers are not affected."""
    started: list[Running] = []

    def start() -> Running:
        started.append(
            start_job(
                {
                    "script": "job.py:run",
                    "start_method": start_method,
                    "processes": 2,
                    "chunk_size": 5,
                    "inputs": {"range": 40},
                },
                scripts=job("ALWAYS = False\n" + ONE_WAITS),
            )
        )
        return started[0]

    assert kill_task_3(start, tmp_path, number) < 1
    run = started[0].wait().check()
    assert run.values() == list(range(40))
    attempts = {result["task"]: result["attempt"] for result in run.results()}
    assert attempts == {task: 2 if task == 3 else 1 for task in range(40)}
    for task in range(40):
        assert len(harness.marks(tmp_path / f"began-{task}")) == attempts[task]
    dead = [p for p in run.summary()["processes"] if not p["expected"]]
    assert [process["signal"] for process in dead] == [number]
    assert re.search(r"task 3 is tried again: .*signal " + str(int(number)), run.stderr)


def test_a_death_that_is_not_tried_again(
    start_job: StartCommand, tmp_path: Path, start_method: str
) -> None:
    """The task fails with the signal and the last lines of its log."""
    running = start_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "processes": 2,
            "retries": {"on_death": 0},
            "inputs": {"range": 8},
        },
        scripts=job("ALWAYS = True\n" + ONE_WAITS),
    )
    kill_task_3(lambda: running, tmp_path, signal.SIGKILL)
    run = running.wait().check(1)
    failed = run.results()[3]
    assert (failed["status"], failed["attempt"]) == ("failed", 1)
    error = failed["error"]
    assert error["type"] == "WorkerDied"
    assert re.search(r"signal 9\b", error["message"])
    assert error["log"].splitlines()[-1] == "line 29 of task 3"
    assert "line 0 of" not in error["log"]
    assert [r["value"] for r in run.results() if r["task"] != 3] == [0, 1, 2, 4, 5, 6, 7]
    assert len(harness.marks(tmp_path / "began-3")) == 1


def test_the_log_of_a_death_is_that_of_its_worker_only(run_job: RunCommand) -> None:
    """Output of an earlier worker in the same slot is not quoted."""
    script = """
import os
import sys


def run(number):
    print(f"words of task {number}", file=sys.stderr)
    if number % 2:
        os.kill(os.getpid(), 9)
"""
    run = run_job(
        {
            "script": "job.py:run",
            "processes": 1,
            "chunk_size": 1,
            "retries": {"on_death": 0},
            "limits": {"tasks_per_worker": 1},
            "inputs": {"range": 4},
        },
        scripts=job(script),
    ).check(1)
    assert [r["error"]["log"] for r in run.results() if r["task"] % 2] == [
        "words of task 1",
        "words of task 3",
    ]


def test_many_deaths_lose_nothing(run_job: RunCommand, start_method: str) -> None:
    """Every fifth task kills its worker on its first attempt; each one ends exactly once."""
    script = """
import os

from events import mark


def run(number):
    mark("runs", number)
    if number % 5 == 0 and os.environ["MPRUN_ATTEMPT"] == "1":
        os.kill(os.getpid(), 9)
    return number
"""
    run = run_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "processes": 3,
            "inputs": {"range": 200},
        },
        scripts=job(script),
    ).check()
    assert run.values() == list(range(200))
    runs = Counter(harness.marks(run.run_dir.parent / "runs"))
    assert runs == {str(task): 2 if task % 5 == 0 else 1 for task in range(200)}
    assert run.summary()["counts"]["retried"] == 40


def test_kills_at_any_moment_lose_nothing(start_job: StartCommand, tmp_path: Path) -> None:
    """Workers are killed at random; every task ends once, with its own value."""
    seed = int(os.environ.get("MPRUN_TEST_SEED", time.time_ns() % 10_000))
    print("seed", seed)  # shown if the test fails
    dice = random.Random(seed)
    script = "import time\n\n\ndef run(n):\n    time.sleep(n % 4 / 1000)\n    return n\n"
    running = start_job(
        {
            "script": "job.py:run",
            "processes": 3,
            "retries": {"on_death": 1000},
            "inputs": {"range": 2000},
        },
        "-q",
        scripts=job(script),
    )
    kills = 0
    while running.process.poll() is None and kills < 40:
        time.sleep(dice.random() / 20)  # the test needs any moment
        ours = {process.pid: process for process in running.children()}
        supervisor = {p.pid for p in ours.values() if p.ppid == running.pid}
        hosts = {p.pid for p in ours.values() if p.ppid in supervisor}
        workers = [p.pid for p in ours.values() if p.ppid in hosts]
        if workers:
            with contextlib.suppress(ProcessLookupError):  # it ended on its own
                os.kill(dice.choice(workers), signal.SIGKILL)
                kills += 1
    run = running.wait().check()
    assert kills > 2  # a busy machine leaves time for few
    assert run.values() == list(range(2000))


@pytest.mark.skipif(bool(harness.PRELOAD), reason="with this limit, a sanitizer has no memory for itself")
def test_a_worker_that_runs_out_of_memory(run_job: RunCommand, start_method: str) -> None:
    """A MemoryError is an error like any other; the worker goes on."""
    script = """
import resource


def run(number):
    if number == 1:
        resource.setrlimit(resource.RLIMIT_AS, (2**30, resource.RLIM_INFINITY))
        return len(bytearray(2**31))
    return number
"""
    run = run_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "processes": 1,
            "inputs": {"range": 4},
        },
        scripts=job(script),
    ).check(1)
    results = run.results()
    assert results[1]["error"]["type"] == "MemoryError"
    assert [r.get("value") for r in results] == [0, None, 2, 3]
    assert len({p["pid"] for p in run.summary()["processes"] if p["role"] == "worker"}) == 1


# --- mprun dies --------------------------------------------------------------------------------

# Every worker leaves a daemon of its own: another session, no parent.
FAMILY = """
import os
import signal
import subprocess
import time

from events import mark, wait_for


def leave_daemon(name):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            mark("family", os.getpid())
            time.sleep(600)
        os._exit(0)
    os.wait()


def run(number):
    leave_daemon(number)
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    mark("family", child.pid)
    mark("family", os.getpid())
    wait_for("go", seconds=60)
    return number
"""


def start_family(
    start_job: StartCommand, folder: Path, start_method: str
) -> tuple[Running, list[int]]:
    """A job with two busy workers; returns it with the pids of every process that must not outlive it."""
    running = start_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "processes": 2,
            "chunk_size": 1,
            "inputs": {"range": 2},
        },
        scripts=job(FAMILY),
        process_group=0,
    )
    harness.wait_until(lambda: len(harness.marks(folder / "family")) == 6, what="two workers")
    pids = set(map(int, harness.marks(folder / "family")))
    pids |= {process.pid for process in running.children()}
    return running, sorted(pids - {running.pid})


def supervisor_of(running: Running) -> int:
    """The only child of the process that the user started."""
    (child,) = [p for p in running.children() if p.ppid == running.pid]
    return child.pid


def seconds_to_end() -> float:
    """How soon after mprun all its processes are gone; a sanitizer gives back terabytes of mappings as mprun ends."""
    return 10 if b"__asan_init" in harness.MPRUN_BIN.read_bytes() else 1


def assert_all_gone(pids: list[int], since: float) -> None:
    """Fails if any of them is alive a second after `since`."""
    left = since + seconds_to_end() - time.monotonic()
    try:
        harness.wait_until(
            lambda: not any(map(harness.is_alive, pids)), timeout=max(left, 0), what="their end"
        )
    except AssertionError:
        alive = [str(p) for p in harness.list_processes().values() if p.pid in pids and p.alive]
        raise AssertionError("still alive:\n" + "\n".join(alive)) from None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
@pytest.mark.parametrize("who", ["mprun", "supervisor", "group"])
def test_no_orphans_when_mprun_is_killed(
    start_job: StartCommand, tmp_path: Path, start_method: str, who: str, number: int
) -> None:
    running, pids = start_family(start_job, tmp_path, start_method)
    supervisor = supervisor_of(running)
    killed = time.monotonic()
    if who == "group":
        os.killpg(running.pid, number)
    else:
        os.kill(running.pid if who == "mprun" else supervisor, number)
    assert_all_gone(pids, killed)
    running.process.wait(5)
    if who == "supervisor":
        assert running.process.returncode == 125
        assert f"signal {int(number)}" in running.stderr
    else:
        assert running.process.returncode == -number


def test_no_orphans_of_a_killed_command_job(start_job: StartCommand, tmp_path: Path) -> None:
    running = start_job(
        {
            "command": ["sh", "-c", "setsid sleep 600 & echo $! >>family; echo $$ >>family; wait"],
            "processes": 2,
            "inputs": {"range": 2},
        },
        process_group=0,
    )
    harness.wait_until(lambda: len(harness.marks(tmp_path / "family")) == 4, what="two commands")
    pids = [process.pid for process in running.children()]
    killed = time.monotonic()
    os.kill(running.pid, signal.SIGKILL)
    assert_all_gone(pids, killed)
    running.process.wait(5)


def test_no_orphans_of_a_killed_program(start_mprun: StartCommand, tmp_path: Path) -> None:
    """`mprun -- COMMAND` too."""
    running = start_mprun(
        "--",
        "sh",
        "-c",
        "setsid sleep 600 & echo $! >>family; echo $$ >>family; wait",
        output=False,
        process_group=0,
    )
    harness.wait_until(lambda: len(harness.marks(tmp_path / "family")) == 2, what="the program")
    pids = [process.pid for process in running.children()]
    killed = time.monotonic()
    os.kill(running.pid, signal.SIGKILL)
    assert_all_gone(pids, killed)
    running.process.wait(5)


def test_no_orphans_of_a_job_that_ended_well(
    start_job: StartCommand, tmp_path: Path, start_method: str
) -> None:
    """Processes that tasks leave running end with the job, and the user is warned."""
    running, pids = start_family(start_job, tmp_path, start_method)
    (tmp_path / "go").write_text("\n")
    run = running.wait().check()
    assert run.values() == [0, 1]
    assert not any(map(harness.is_alive, pids))
    assert run.survivors == []
    assert "left behind" in run.stderr


@pytest.mark.parametrize("start_method", ["fork", "forkserver"])
def test_a_killed_host_is_replaced(
    start_job: StartCommand, tmp_path: Path, start_method: str
) -> None:
    """Its workers end with it; a new host starts new workers; the job continues; then all processes are gone."""
    running, pids = start_family(start_job, tmp_path, start_method)
    supervisor = supervisor_of(running)
    workers = set(map(int, harness.marks(tmp_path / "family")))
    (host,) = {p.pid for p in running.children() if p.ppid == supervisor} - workers
    below = [p.pid for p in harness.descendants(host) if p.ppid == host]
    assert len(below) == 2
    killed = time.monotonic()
    os.kill(host, signal.SIGKILL)
    assert_all_gone(below, killed)
    harness.wait_until(lambda: len(harness.marks(tmp_path / "family")) == 12, what="new workers")
    (tmp_path / "go").write_text("\n")
    run = running.wait().check()
    assert not any(map(harness.is_alive, pids))
    assert run.survivors == []
    assert run.values() == [0, 1]
    assert [result["attempt"] for result in run.results()] == [2, 2]
    hosts = [p for p in run.summary()["processes"] if p["role"] == "host"]
    assert [(p.get("signal"), p["expected"]) for p in hosts] == [(9, False), (None, True)]
