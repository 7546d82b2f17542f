"""Hosts and slots that die again and again: replaced while that helps, then one report."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

import harness
from harness import RunCommand, Running, StartCommand


def host_of(running: Running, old: set[int]) -> int | None:
    """The first child of the supervisor without those in `old`, some of which may still be dying; or None."""
    supervisors = {p.pid for p in running.children() if p.ppid == running.pid}
    hosts = [p.pid for p in running.children() if p.ppid in supervisors and p.alive]
    return min(set(hosts) - old, default=None)


@pytest.mark.parametrize("start_method", ["fork", "forkserver"])
def test_a_host_killed_after_every_few_tasks(
    start_job: StartCommand, tmp_path: Path, start_method: str
) -> None:
    """More often in total than the limit in a row; each new host runs setup again; results are exact."""
    script = """
import os

from events import mark, wait_for

mark("loaded", os.getpid())


def run(number):
    if number >= 400:
        wait_for("killed", number // 400)
    mark("done")
    return number
"""
    running = start_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "processes": 4,
            "retries": {"on_death": 100},
            "inputs": {"range": 2000},
        },
        "-q",
        scripts={"job.py": script, "events.py": harness.EVENTS},
    )
    seen = 0
    old: set[int] = set()
    for _ in range(4):
        harness.wait_until(
            lambda seen=seen: len(harness.marks(tmp_path / "done")) > seen + 20, what="tasks"
        )
        harness.wait_until(
            lambda: set(map(int, harness.marks(tmp_path / "loaded"))) - old, what="a loaded script"
        )
        host = harness.wait_until(lambda: host_of(running, old), what="a host")
        old |= {process.pid for process in running.children()}
        os.kill(host, signal.SIGKILL)
        seen = len(harness.marks(tmp_path / "done"))
        with (tmp_path / "killed").open("a") as killed:
            killed.write(f"{host}\n")
    run = running.wait(120).check()
    assert run.values() == list(range(2000))
    hosts = [p for p in run.summary()["processes"] if p["role"] == "host"]
    assert len(hosts) >= 4 and len(set(harness.marks(tmp_path / "loaded"))) >= 4


@pytest.mark.parametrize("start_method", ["fork", "forkserver"])
def test_a_host_killed_while_it_loads(
    start_job: StartCommand, tmp_path: Path, start_method: str
) -> None:
    """Its replacement does the loading."""
    script = """
import os

from events import mark, wait_for

mark("loading", os.getpid())
if len(open("loading").readlines()) == 1:
    wait_for("never", seconds=60)


def run(number):
    return number
"""
    running = start_job(
        {
            "script": "job.py:run",
            "preload": ["job"],
            "start_method": start_method,
            "processes": 4,
            "env": {"PYTHONPATH": str(tmp_path)},
            "inputs": {"range": 8},
        },
        scripts={"job.py": script, "events.py": harness.EVENTS},
    )
    harness.wait_until(lambda: harness.marks(tmp_path / "loading"), timeout=60, what="the host")
    os.kill(int(harness.marks(tmp_path / "loading")[0]), signal.SIGKILL)
    run = running.wait().check()
    assert run.values() == list(range(8))


@pytest.mark.parametrize("start_method", ["fork", "forkserver"])
def test_a_host_that_dies_again_and_again(run_job: RunCommand, start_method: str) -> None:
    """Killed by every task: fifteen deaths in a row with no task done between them end the job."""
    script = "import os, time\n\n\ndef run(n):\n    os.kill(os.getppid(), 9)\n    time.sleep(60)\n"
    run = run_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "processes": 2,
            "retries": {"on_death": 1000},
            "inputs": {"range": 4},
        },
        scripts={"job.py": script},
    ).check(3)
    assert run.stderr.count("again and again") == 1, run.stderr
    hosts = [p for p in run.summary()["processes"] if p["role"] == "host"]
    assert [host["signal"] for host in hosts] == [9] * 15


def test_a_python_that_is_killed_at_once(run_job: RunCommand, tmp_path: Path, start_method: str) -> None:
    """Killed before it can report anything, and more than once: not its fault, so it is started again."""
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nfor n in 1 2 3 4 5; do mkdir {tmp_path}/$n 2>&- && kill -9 $$; done\n'
        f'exec {harness.MPRUN_PYTHON} "$@"\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    run = run_job(
        {"script": "job.py:run", "start_method": start_method, "processes": 2, "inputs": {"range": 8}},
        "--python",
        python,
        scripts={"job.py": "def run(number):\n    return number\n"},
    ).check()
    assert run.values() == list(range(8))
    assert [p["signal"] for p in run.summary()["processes"] if not p["expected"]] == [9] * 5


VAIN = """
import os
import threading
import time

from events import mark, wait_for


def worker_setup():
    if os.environ["MPRUN_WORKER"] != "1":
        return
    mark("starts")
    if MODE == "start":
        os._exit(9)
    threading.Thread(target=lambda: (time.sleep(0.02), os._exit(9)), daemon=True).start()


def run(number):
    if MODE == "ready":
        wait_for("never", seconds=60)
    return number
"""


def test_a_slot_that_never_starts(run_job: RunCommand, start_method: str) -> None:
    """Other slots start and end workers meanwhile: the job still ends with one report."""
    run = run_job(
        {
            "script": "vain.py:run",
            "worker_setup": "worker_setup",
            "start_method": start_method,
            "processes": 2,
            "limits": {"tasks_per_worker": 1},
            "inputs": {"range": 2000},
        },
        scripts={"vain.py": "MODE = 'start'\n" + VAIN, "events.py": harness.EVENTS},
    ).check(3)
    assert re.search(r"worker 1 \(pid \d+\) ended with exit code 9 while it was starting", run.stderr)
    assert len(harness.marks(run.run_dir.parent / "starts")) == 3


def test_a_slot_whose_workers_die_before_their_first_task(
    start_job: StartCommand, tmp_path: Path, start_method: str
) -> None:
    """They were ready, and there was nothing to do: they are not replaced forever."""
    reader, writer = os.pipe()
    with open(writer, "wb", buffering=0) as source:
        source.write(b"the only task so far\n")
        running = start_job(
            {
                "script": "vain.py:run",
                "worker_setup": "worker_setup",
                "start_method": start_method,
                "processes": 2,
                "retries": {"on_death": 100},
                "inputs": {"lines": "-"},
            },
            scripts={"vain.py": "MODE = 'ready'\n" + VAIN, "events.py": harness.EVENTS},
            stdin=reader,
        )
        run = running.wait().check(3)
    assert 3 <= len(harness.marks(tmp_path / "starts")) <= 6
    assert re.search(r"worker 1 \(pid \d+\) ended with exit code 9", run.stderr)


def test_a_host_reaps_a_worker_only_on_request(run_job: RunCommand) -> None:
    """Until mprun has seen the end, no other process may get the worker's number."""
    script = """
import os
import socket

from mprun import host
from mprun.protocol import Channels


def has_unreaped_child(pid):
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False


def run(_):
    mprun_side, host_side = socket.socketpair()
    results, results_of_host = os.pipe()
    forking = host.Host(None, Channels(host_side.fileno(), results_of_host, -1), None)
    worker = os.fork()
    if worker == 0:
        os._exit(7)
    forking.announce({"slot": 0}, worker)
    ((ended, _),) = forking.poll.poll()
    forking.report_end(ended)
    reported = has_unreaped_child(worker)
    forking.reap(worker)
    return [reported, has_unreaped_child(worker)]
"""
    job = {"script": "job.py:run", "inputs": {"range": 1}}
    run = run_job(job, scripts={"job.py": script}, timeout=60).check()
    assert run.values() == [[True, False]]
