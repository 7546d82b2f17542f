"""pytest --mprun: a test that hangs is proved stuck, ended, failed with the report, and the next ones run.

`pytest_watch` runs `mprun watch` beside each process that runs tests, and shares a folder with it:

    NAME.test     the test that runs now; written here
    NAME.hang     the report of a hang of that test; written there, taken here
    NAME.lock     held (flock) there from the report until something was done about the hang

NAME is that of a worker of pytest-xdist, or "main".
"""
from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from typing import Any, Generator, Optional

import pytest

#: How often a test is interrupted in vain before the process is killed.
INTERRUPTS = 3
#: A worker of xdist can be replaced, so it is ended without a proof too, after this time.
WORKER_STALL_SECONDS = 300.0


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mprun", "hangs (mprun)")
    group.addoption("--mprun", action="store_true", help="end and fail each test that is proved to hang, with the reason")
    group.addoption("--mprun-stall-seconds", type=float, metavar="S",
                    help="also tests in which nothing has moved for S seconds, though that is no proof (xdist: 300)")  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--mprun"):
        return
    worker: Optional[dict[str, Any]] = getattr(config, "workerinput", None)
    if worker is not None:
        config.pluginmanager.register(WatchedTests(config, worker["mprun_folder"], worker["workerid"]))
        return
    folder = tempfile.mkdtemp(prefix="pytest-mprun-")
    if config.getoption("dist", "no") != "no":
        config.pluginmanager.register(Controller(folder))
    else:
        config.pluginmanager.register(WatchedTests(config, folder))


class Controller:
    """Hooks of xdist's controller: tells workers the folder, and adds the report of a hang to a crashed test."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["mprun_folder"] = self.folder

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any) -> None:
        with suppress(OSError), open(place(self.folder, report.node.gateway.id, "hang"), encoding="utf-8") as file:
            report.longrepr = f"{report.longrepr}\n{file.read()}"

    def pytest_unconfigure(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class WatchedTests:
    """Hooks of a process that runs tests."""

    def __init__(self, config: pytest.Config, folder: str, worker: Optional[str] = None) -> None:
        self.config, self.folder, self.name = config, folder, worker or "main"
        self.interrupts = 0 if worker else INTERRUPTS  # xdist replaces a worker that is killed
        stall = config.getoption("--mprun-stall-seconds")
        self.stall = WORKER_STALL_SECONDS if worker and stall is None else stall
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self.current = os.open(place(folder, self.name, "test"), flags, 0o600)
        self.lock = os.open(place(folder, self.name, "lock"), flags, 0o600)
        self.hang = place(folder, self.name, "hang")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        capture = self.config.pluginmanager.getplugin("capturemanager")
        if capture is None:
            self.start_watch()
        else:
            with capture.global_and_fixture_disabled():  # its standard error shall be pytest's
                self.start_watch()

    def start_watch(self) -> None:
        """Returns once the watch has begun."""
        words = [sys.executable, os.path.join(os.path.dirname(__file__), "pytest_watch.py"), str(os.getpid()),
                 self.folder, self.name, str(self.interrupts), "" if self.stall is None else str(self.stall)]  # fmt: skip
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as starter:
            assert starter.stdout is not None
            said = starter.stdout.readline()
        if said != "ready\n":
            raise pytest.UsageError(f"--mprun: {said.strip() or 'the watch did not start'}")

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        drop_handler_of_readline()
        self.show(item.nodeid)
        yield
        self.show("")

    def show(self, test: str) -> None:
        line = f"{test}\n".encode(errors="replace")
        os.pwrite(self.current, line, 0)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, Any, None]:
        self.fail_if_it_hung((yield))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, Any, None]:
        self.fail_if_it_hung((yield))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, Any, None]:
        self.fail_if_it_hung((yield))

    def fail_if_it_hung(self, outcome: Any) -> None:
        """Fails a step with the report of a hang, whatever else came of it."""
        report = self.take_report()
        if report is None:
            return
        error = outcome.excinfo[1] if outcome.excinfo else None
        if error is not None and not isinstance(error, KeyboardInterrupt):
            report += f"\nAfter that it raised {type(error).__name__}: {error}"
        failure = pytest.fail.Exception(report, pytrace=False)
        if hasattr(outcome, "force_exception"):
            outcome.force_exception(failure)
        else:
            raise failure  # what pluggy before 1.1 wants

    def take_report(self) -> Optional[str]:
        if not os.path.exists(self.hang):
            return None
        self.await_action()
        with open(self.hang, encoding="utf-8") as file:
            report = file.read()
        os.unlink(self.hang)
        return report

    def await_action(self) -> None:
        """Waits until the watch has acted. An interrupt that arrives here was meant for the test, which is over."""
        while True:
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX)
                fcntl.flock(self.lock, fcntl.LOCK_UN)
                return
            except KeyboardInterrupt:
                continue


def drop_handler_of_readline() -> None:
    """Who catches a signal may go on when it comes, so nothing could be proved of a process with readline, which pytest
    imports since 8.3.4: it catches SIGWINCH. A handler in Python stays."""
    with suppress(ValueError):  # not the main thread
        if signal.getsignal(signal.SIGWINCH) is signal.SIG_DFL:
            signal.signal(signal.SIGWINCH, signal.SIG_DFL)


def place(folder: str, name: str, kind: str) -> str:
    return os.path.join(folder, f"{name}.{kind}")
