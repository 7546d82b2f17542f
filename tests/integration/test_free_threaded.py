"""Free-threaded Pythons: jobs run without a GIL, and hangs are proved with the lines of Python that wait.

Debian has none: the stage free-threaded of tests/machines builds one, and mprun with an extension for it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from harness import MPRUN_PYTHON, RunCommand, StartCommand

PYTHON = os.environ.get("FREE_THREADED_PYTHON", "")

needs_one = pytest.mark.skipif(not PYTHON, reason="there is no free-threaded Python (FREE_THREADED_PYTHON)")

PRETENDS = """
import sys
sys.abiflags = "t"
import mprun
"""


def test_one_without_an_extension_is_refused(start_plain: StartCommand, mprun: Path, tmp_path: Path) -> None:
    """The extension of other Pythons would crash it."""
    (tmp_path / "program.py").write_text(PRETENDS)
    package = mprun.parent.parent / "lib/mprun/python"
    run = start_plain(MPRUN_PYTHON, "program.py", env={"PYTHONPATH": str(package)}).wait().check(1)
    assert "ImportError: this mprun has no extension for free-threaded Python 3." in run.stderr
    assert "build it with -DMPRUN_FREE_THREADED_PYTHONS=" in run.stderr


SHARING = """
import sys
import threading

import mprun

TIMES, THREADS = 2000, 4


def run(number):
    counter, lock, queue = mprun.counter("counter"), mprun.lock("lock"), mprun.queue("queue")
    shared = mprun.dict("dict")

    def use():
        for time in range(TIMES):
            counter.add()
            with lock:
                shared["sum"] = shared.get("sum", 0) + 1
            queue.put(time)
            queue.get()

    threads = [threading.Thread(target=use) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    mprun.barrier("all", 2).wait()
    return [sys._is_gil_enabled(), counter.value, shared["sum"], queue.qsize()]
"""


@needs_one
def test_threads_share_objects_without_a_gil(run_job: RunCommand, start_method: str) -> None:
    job = {"version": 1, "script": "task.py:run", "inputs": {"range": 2}, "processes": 2, "python": PYTHON}
    run = run_job({**job, "start_method": start_method}, scripts={"task.py": SHARING}, timeout=300).check()
    assert run.values() == [[False, 2 * 4 * 2000, 2 * 4 * 2000, 0]] * 2
    assert [run.log(worker, "err") for worker in range(2)] == ["", ""]  # no warning that the GIL was enabled


HANG = """
import threading

first, second = threading.Lock(), threading.Lock()
both = threading.Barrier(2)


def take(one, other):
    with one:
        both.wait()
        other.acquire()


threading.Thread(target=take, args=(first, second)).start()
take(second, first)
"""


@needs_one
def test_a_hang_is_proved_and_named(run_mprun: RunCommand, tmp_path: Path) -> None:
    """The second thread executes a copy of the instructions."""
    (tmp_path / "program.py").write_text(HANG)
    run_mprun("--on-hang", "kill", "--hang-report", "hang.json", "--", PYTHON, "program.py").check(124)
    hang = json.loads((tmp_path / "hang.json").read_text(encoding="utf-8"))
    assert (hang["verdict"], hang["cause"]["id"]) == ("deadlock", "lock-cycle")
    frames = [thread["python"][0] for thread in hang["processes"][0]["threads"]]
    assert [(frame["function"], frame["line"]) for frame in frames] == [("take", 11)] * 2
