"""What a service manager hears of mprun: a socket of the test takes the place of systemd's."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import harness
from harness import EVENTS, MPRUN_PYTHON, StartCommand, wait_until

READY, ALIVE = b"READY=1", b"WATCHDOG=1"
PERIOD = 0.2  # seconds of the watchdog


class Manager:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + f"mprun-test-{os.getpid()}")
        self.socket.settimeout(60)

    def environment(self, watchdog: bool = True) -> dict[str, str]:
        address = {"NOTIFY_SOCKET": "@" + self.socket.getsockname()[1:].decode()}
        return {**address, "WATCHDOG_USEC": str(int(PERIOD * 1e6))} if watchdog else address

    def hear(self) -> bytes:
        return self.socket.recv(100)

    def hears_nothing_for(self, seconds: float) -> bool:
        """After what is on its way already."""
        self.socket.setblocking(False)
        try:
            while True:
                self.hear()
        except BlockingIOError:
            self.socket.settimeout(seconds)
        try:
            self.hear()
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(60)
        return False


@pytest.fixture
def manager() -> Iterator[Manager]:
    found = Manager()
    yield found
    found.socket.close()


def test_a_job_is_ready_and_alive(start_job: StartCommand, manager: Manager, tmp_path: Path) -> None:
    script = """
import os
from events import wait_for


def work(number):
    wait_for("go_on", seconds=60)
    return [os.environ.get(name) for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC")]
"""
    spec = {"script": "job.py", "function": "work", "inputs": {"range": 1}}
    job = start_job(spec, scripts={"job.py": script, "events.py": EVENTS}, env=manager.environment())
    assert manager.hear() == READY
    assert [manager.hear() for _ in range(5)] == [ALIVE] * 5
    (tmp_path / "go_on").write_text("\n", encoding="utf-8")
    assert job.wait().check().values() == [[None, None]]


def test_a_program_is_ready_and_has_no_watchdog(start_mprun: StartCommand, manager: Manager) -> None:
    program = [MPRUN_PYTHON, "-c", "import os; print(os.environ.get('NOTIFY_SOCKET'))"]
    run = start_mprun("--", *program, env=manager.environment(watchdog=False), output=False).wait().check()
    assert run.stdout == "None\n"
    assert manager.hear() == READY
    assert manager.hears_nothing_for(0.01)


def test_a_program_that_is_proved_stuck_is_not_alive(start_mprun: StartCommand, manager: Manager) -> None:
    program = [MPRUN_PYTHON, "-c", "import os; os.read(os.pipe()[0], 1)"]
    running = start_mprun("--", *program, env=manager.environment(), output=False)
    assert manager.hear() == READY
    wait_until(lambda: "hang proved" in running.stderr, 60)
    assert manager.hears_nothing_for(10 * PERIOD)
    running.stop()


def test_a_job_that_has_ended_what_hung_is_alive_again(
    start_job: StartCommand, manager: Manager, tmp_path: Path
) -> None:
    script = """
import os
from events import mark, wait_for


def work(number):
    if os.environ["MPRUN_ATTEMPT"] == "1":
        os.read(os.pipe()[0], 1)
    mark("again")
    wait_for("go_on", seconds=60)
"""
    spec = {"script": "job.py", "function": "work", "inputs": {"range": 1}}
    job = start_job(spec, scripts={"job.py": script, "events.py": EVENTS}, env=manager.environment())
    wait_until(lambda: harness.marks(tmp_path / "again"), 60)
    assert not manager.hears_nothing_for(60)
    (tmp_path / "go_on").write_text("\n", encoding="utf-8")
    assert len(job.wait().check().hangs()) == 1


def test_a_manager_that_is_gone_does_no_harm(start_mprun: StartCommand) -> None:
    env = {"NOTIFY_SOCKET": "/nowhere/at/all", "WATCHDOG_USEC": "1000"}
    start_mprun("--", "true", env=env, output=False).wait().check()
