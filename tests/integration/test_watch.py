"""`mprun watch PID...`: trees that mprun has not started are watched until they end, reported, or ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import MPRUN_PYTHON, RunCommand, Running, StartCommand, wait_until

STOPPED_BY_US = 124
STUCK = "import os; os.read(os.pipe()[0], 1)"
IDLE = "import time; time.sleep(1000)"
# Ends when a byte can be read from a FIFO.
UNTIL_TOLD = "open({!r}).read(1)"
# A pool whose task was lost with its worker: join() waits for ever, for two idle workers.
LOST_TASK = """
import multiprocessing, os, signal
pool = multiprocessing.get_context("fork").Pool(2)
pool.apply_async(os.kill, (os.getpid(), 0))
pool.apply_async(os.abort)
pool.close()
pool.join()
"""
# Two threads of a server that idle, one in accept() and one at an empty queue.
SERVER = """
import queue, socket, threading
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=queue.Queue().get, daemon=True).start()
server.accept()
"""


@pytest.fixture
def start_victim(start_plain: StartCommand) -> Iterator[Any]:
    """start_victim(script) -> Running: a program in Python to watch, ended with the test."""
    victims: list[Running] = []

    def start(script: str) -> Running:
        victims.append(start_plain(MPRUN_PYTHON, "-c", script))
        return victims[-1]

    yield start
    for victim in victims:
        victim.stop()


def start_watch(start_mprun: StartCommand, *words: str | int | Path) -> Running:
    """Returns when it watches."""
    running = start_mprun("-v", "watch", *map(str, words), output=False)
    wait_until(lambda: "watches process" in running.stderr or running.process.poll() is not None, 30)
    return running


def test_it_ends_with_the_last_tree(start_mprun: StartCommand, start_victim: Any, tmp_path: Path) -> None:
    gates = [tmp_path / "first", tmp_path / "second"]
    for gate in gates:
        os.mkfifo(gate)
    victims = [start_victim(UNTIL_TOLD.format(str(gate))) for gate in gates]
    watch = start_watch(start_mprun, *(victim.pid for victim in victims))
    for gate, victim in zip(gates, victims):
        assert watch.process.poll() is None
        gate.write_text("x")
        wait_until(lambda pid=victim.pid: f"process {pid} has ended" in watch.stderr, 30)
    run = watch.wait().check()
    assert "hang" not in run.stderr


def test_a_hang_is_reported_and_goes_on(start_mprun: StartCommand, start_victim: Any, tmp_path: Path) -> None:
    victim = start_victim(STUCK)
    watch = start_watch(start_mprun, "--hang-report", tmp_path / "hang.json", victim.pid)
    wait_until(lambda: "hang proved (deadlock)" in watch.stderr, 60)
    assert harness.is_alive(victim.pid) and watch.process.poll() is None
    report = json.loads((tmp_path / "hang.json").read_text(encoding="utf-8"))
    assert (report["verdict"], report["cause"]["id"]) == ("deadlock", "pipe-never-closed")
    assert report["processes"][0]["pid"] == victim.pid
    victim.stop()
    watch.wait().check()


def test_a_hang_is_ended_with_all_below_it(start_mprun: StartCommand, start_victim: Any) -> None:
    victim, idle = start_victim(LOST_TASK), start_victim(IDLE)
    watch = start_watch(start_mprun, victim.pid, idle.pid, "--on-hang", "kill")
    assert victim.process.wait(60) == -signal.SIGKILL
    wait_until(lambda: not harness.descendants(victim.pid), 30)
    wait_until(lambda: f"process {victim.pid} has ended" in watch.stderr, 30)
    assert watch.process.poll() is None and harness.is_alive(idle.pid)
    idle.stop()
    run = watch.wait().check(STOPPED_BY_US)
    assert "multiprocessing.pool.Pool.join" in run.stderr


def test_what_idles_is_not_reported(start_mprun: StartCommand, start_victim: Any) -> None:
    """By the time at which another tree, which begins to wait later, is proved stuck."""
    idle = [start_victim(script) for script in (IDLE, SERVER)]
    gone = "multiprocessing.get_context('fork').Pool(2); import time; time.sleep(1000)"
    idle.append(start_victim(f"import multiprocessing; pool = {gone}"))
    stuck = start_victim(STUCK)
    watch = start_watch(start_mprun, *(victim.pid for victim in [*idle, stuck]))
    wait_until(lambda: "hang proved" in watch.stderr, 60)
    watch.send_signal(signal.SIGTERM)
    run = watch.wait().check(128 + signal.SIGTERM)
    assert run.stderr.count("mprun: hang") == 1 and f"pid {stuck.pid}" in run.stderr
    assert all(harness.is_alive(victim.pid) for victim in [*idle, stuck])


def test_what_stands_still_for_long_is_stalled(start_mprun: StartCommand, start_victim: Any) -> None:
    victim = start_victim(SERVER)
    watch = start_watch(start_mprun, "--stall-seconds", "1", "--on-hang", "kill", victim.pid)
    run = watch.wait().check(STOPPED_BY_US)
    assert "stalled" in run.stderr
    assert victim.process.wait(30) == -signal.SIGKILL


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "watch: PID is required"),
        (["python"], "watch: PID: found python, allowed: the PID of a process"),
        (["1", "-3"], "watch: PID: found -3, allowed: the PID of a process"),
        (["1", "--what"], "unknown option --what"),
        (["1", "--", "true"], "watch: found --, allowed: options and PID"),
        (["1", "--retries", "2"], "--retries 2 is only valid with a job"),
        (["1", "--json"], "--json is only valid with `mprun doctor` or `mprun inspect`"),
    ],
)
def test_a_wrong_command_line(run_mprun: RunCommand, words: list[str], complaint: str) -> None:
    run = run_mprun("watch", *words).check(2)
    assert complaint in run.stderr and run.stdout == ""


def test_who_cannot_be_watched(run_mprun: RunCommand, start_victim: Any) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert f"watch: there is no process {ended.pid}" in run_mprun("watch", str(ended.pid)).check(2).stderr
    own = run_mprun("watch", str(os.getpid())).check(2)
    assert f"watch: mprun itself is below process {os.getpid()}" in own.stderr
    pid = str(start_victim(IDLE).pid)
    retry = run_mprun("watch", "--on-hang", "retry", pid).check(2)
    assert "allowed for a program: \"kill\", \"report\"" in retry.stderr


def test_another_users_process(mprun: Path, start_victim: Any, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can run as another user")
    pid = start_victim(IDLE).pid
    folder = Path(subprocess.run(["mktemp", "-d"], check=True, capture_output=True, text=True).stdout.strip())
    try:
        folder.chmod(0o755)
        shutil.copy(mprun, folder / "mprun")
        done = subprocess.run(
            [folder / "mprun", "watch", str(pid)], user=65534, group=65534, extra_groups=[], cwd="/",
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    finally:
        shutil.rmtree(folder)
    assert done.returncode == 4
    assert f"watch: process {pid} (python3" in done.stderr and "may not be looked into: it is another user's" in done.stderr
