"""pytest --mprun: hangs of tests are proved, ended and named, and the tests after them run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import harness

PACKAGE = Path(harness.MPRUN_BIN).resolve().parent.parent / "lib" / "mprun" / "python"
# By fork: a fork server, the default since Python 3.14, could be asked by a process outside, so nothing is proved of it.
HANGS = """
import ctypes, multiprocessing, threading, time

def test_before():
    pass

def test_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()

def test_child():
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    child = fork.Process(target=queue.put, args=(b"x" * 10_000_000,))
    child.start()
    child.join()

def test_after():
    pass
"""

RunPytest = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_pytest(tmp_path: Path) -> RunPytest:
    """run_pytest(tests, options...): pytest with the plug-in, in a process of its own."""

    def run(tests: str, *options: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_it.py").write_text(tests, encoding="utf-8")
        words = [harness.MPRUN_PYTHON, "-m", "pytest", "-p", "mprun.pytest_plugin", "-p", "no:cacheprovider", *options]
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        env = {**os.environ, "PYTHONPATH": str(PACKAGE), "TMPDIR": str(temporary), "COLUMNS": "120"}
        env = {name: value for name, value in env.items() if not name.startswith("PYTEST_")}
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
        harness.wait_until(lambda: not harness.living_descendants(), what="the watch to end with pytest")
        assert list(temporary.glob("pytest-mprun-*")) == []
        return done

    return run


def failures(run: subprocess.CompletedProcess[str]) -> set[str]:
    """The names of the tests in pytest's summary, which goes on with the reason, in words of its version."""
    return set(re.findall(r"^FAILED \S+?::(\w+)", run.stdout, re.MULTILINE))


def test_hangs_fail_with_their_reports(run_pytest: RunPytest) -> None:
    run = run_pytest(HANGS, "--mprun")
    assert run.returncode == 1, run
    assert failures(run) == {"test_lock", "test_child"}
    assert "2 failed, 2 passed" in run.stdout
    assert "hang proved (deadlock): futex at" in run.stdout and "test_it.py:10" in run.stdout
    assert "cure:  do not lock it twice" in run.stdout
    assert "multiprocessing.Process.join at" in run.stdout and "(queue-not-drained)" in run.stdout
    assert run.stderr == ""


def test_without_the_option_nothing_is_watched(run_pytest: RunPytest) -> None:
    run = run_pytest("import os\ndef test_it(): assert not os.environ.get('MPRUN_RUN_DIR')")
    assert run.returncode == 0, run


def test_what_a_test_does_after_its_end_is_judged_too(run_pytest: RunPytest) -> None:
    """Cleaning up after the interrupt hangs again: the first report stays, and pytest goes on."""
    tests = """
        import threading
        def test_twice():
            lock = threading.Lock()
            lock.acquire()
            try:
                lock.acquire()
            finally:
                threading.Semaphore(0).acquire()
        def test_after():
            pass
    """
    run = run_pytest(textwrap.dedent(tests), "--mprun")
    assert failures(run) == {"test_twice"} and "1 failed, 1 passed" in run.stdout, run
    shown = run.stdout.partition("short test summary")[0]  # which repeats the first line of a failure
    assert shown.count("hang proved") == 1


def test_a_task_that_a_pool_has_lost(run_pytest: RunPytest) -> None:
    """The pool replaces workers, the dead one and those that are killed for the hang, and goes on waiting."""
    tests = """
import multiprocessing, os, signal

def end(_):
    os.kill(os.getpid(), signal.SIGKILL)

def test_pool():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(end, [1])

def test_after():
    pass
"""
    run = run_pytest(tests, "--mprun")
    assert failures(run) == {"test_pool"} and "1 failed, 1 passed" in run.stdout, run
    assert "multiprocessing.pool.Pool.map at" in run.stdout


def test_a_fixture_and_the_end_of_the_interpreter(run_pytest: RunPytest) -> None:
    """A thread that waits for ever does not keep pytest from ending."""
    tests = """
import pytest, threading

@pytest.fixture
def stuck():
    thread = threading.Thread(target=threading.Semaphore(0).acquire)
    thread.start()
    thread.join()

def test_it(stuck):
    pass
"""
    run = run_pytest(tests, "--mprun")
    assert run.returncode == 1, run
    assert "ERROR test_it.py::test_it" in run.stdout and "threading.Thread.join at" in run.stdout


def test_ctrl_c_is_still_one(run_pytest: RunPytest) -> None:
    tests = "import os, signal\ndef test_it(): os.kill(os.getpid(), signal.SIGINT)\ndef test_after(): pass\n"
    run = run_pytest(tests, "--mprun")
    assert run.returncode == 2 and "KeyboardInterrupt" in run.stdout, run


def test_a_wait_that_no_signal_ends(run_pytest: RunPytest) -> None:
    """A mutex of C: nothing can end it but the end of the process. The report is on standard error."""
    tests = """
import ctypes
def test_mutex():
    libc = ctypes.CDLL(None)
    mutex = ctypes.create_string_buffer(64)
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_lock(mutex)
"""
    run = run_pytest(tests, "--mprun")
    assert run.returncode == -signal.SIGKILL, run
    assert "test_it.py::test_mutex" in run.stderr and "hang proved (deadlock)" in run.stderr


def test_the_handler_of_readline_saves_no_test(run_pytest: RunPytest) -> None:
    tests = """
import readline, threading
def test_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
"""
    run = run_pytest(tests, "--mprun")
    assert failures(run) == {"test_lock"}, run


def test_what_may_go_on_is_left_alone(run_pytest: RunPytest) -> None:
    """A child that hangs, and a test that waits for it with a limit of time."""
    tests = """
import multiprocessing, os
def wait():
    os.read(os.pipe()[0], 1)
def test_limit():
    child = multiprocessing.Process(target=wait)
    child.start()
    child.join(4)
    assert child.is_alive()
    child.kill()
    child.join()
"""
    run = run_pytest(tests, "--mprun")
    assert run.returncode == 0, run


def test_workers_of_xdist(run_pytest: RunPytest) -> None:
    """Although a thread of xdist waits for messages from outside. Workers are replaced."""
    run = run_pytest(HANGS, "--mprun", "-n", "2")
    assert failures(run) == {"test_lock", "test_child"} and "2 failed, 2 passed" in run.stdout, run
    assert "crashed while running 'test_it.py::test_lock'" in run.stdout
    assert "hang proved (deadlock): futex at" in run.stdout and "test_it.py:10" in run.stdout
    assert "multiprocessing.Process.join" in run.stdout


def test_messages_that_a_test_waits_for(run_pytest: RunPytest) -> None:
    """A thread of execnet that is the test's own ends its wait; the other worker waits for tests meanwhile."""
    tests = """
import execnet, threading

def test_callback():
    done = threading.Event()
    channel = execnet.makegateway().remote_exec("import time; time.sleep(3); channel.send(1)")
    channel.setcallback(lambda _: done.set())
    done.wait()
"""
    run = run_pytest(tests, "--mprun", "-n", "2")
    assert run.returncode == 0, run
