"""Jobs whose workers hang: the watch's findings are reported, tried again, ended or left alone as configured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from harness import EVENTS, Run, RunCommand, marks

# A watch that fails to see a hang ends here, and the job with 124.
LONGEST = 30

STUCK = '''
import os
import subprocess
import sys
import threading
import time

from events import mark


def attempt():
    return int(os.environ["MPRUN_ATTEMPT"])


def hang(how):
    if how == "lock":
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()  # stuck: lock
    elif how == "event":
        threading.Event().wait()  # stuck: event
    elif how == "pipe":
        reader, writer = os.pipe()
        os.read(reader, 1)  # stuck: pipe
    elif how == "output":
        reader, writer = os.pipe()
        os.dup2(writer, 1)
        os.write(1, b"x" * 200_000)  # stuck: output
    raise AssertionError("it went on")


def work(what):
    """"lock": hangs; "lock 1": does so in its first attempt; any other text is a result."""
    how, _, attempts = what.partition(" ")
    mark("tried", what)
    if how in ("lock", "event", "pipe", "output") and attempt() <= int(attempts or 1000):
        hang(how)
    return [what, attempt()]


def slow(how):
    """Waits, or works, for longer than the watch needs for a proof."""
    if how == "sleep":
        time.sleep(3)
    elif how == "loop":
        end = time.monotonic() + 3
        while time.monotonic() < end:
            pass
    elif how == "child":
        subprocess.run(["sleep", "2"], check=True)
    elif how == "lock":
        lock = threading.Lock()
        lock.acquire()
        threading.Timer(2, lock.release).start()
        lock.acquire()
    return how


def lingering(number):
    """Leaves a thread that the interpreter waits for forever when it exits."""
    if number == 0:
        threading.Thread(target=threading.Event().wait, name="lingers").start()
    return number


def main():
    rank = os.environ["RANK"]
    mark("ranks", rank)
    if rank == "1":
        hang("event")
    time.sleep(120)


if __name__ == "__main__":
    if sys.argv[1:]:
        work(" ".join(sys.argv[1:]))
    else:
        main()
'''

SCRIPTS = {"stuck.py": STUCK, "events.py": EVENTS}


def spec(function: str, items: Sequence[Any], **fields: Any) -> dict[str, Any]:
    return {
        "script": "stuck.py",
        "function": function,
        "inputs": {"items": list(items)},
        "processes": 2,
        "limits": {"job_seconds": LONGEST},
        **fields,
    }


def place(how: str) -> str:
    """Where the script hangs, in human-readable form."""
    (number,) = [
        number
        for number, line in enumerate(STUCK.splitlines(), start=1)
        if line.endswith(f"# stuck: {how}")
    ]
    return f"stuck.py:{number}"


def check_hangs(run: Run, count: int | None = None) -> list[dict[str, Any]]:
    """Every hang of the summary has its two files; returns the reports."""
    entries = run.summary()["hangs"]
    names = [f"hangs/{number}.json" for number in range(1, len(entries) + 1)]
    assert [entry["file"] for entry in entries] == names
    reports = run.hangs()
    assert len(reports) == len(entries)
    for entry, report in zip(entries, reports):
        assert (entry["verdict"], entry["cause"]) == (report["verdict"], report["cause"]["id"])
        text = (run.run_dir / entry["file"]).with_suffix(".txt").read_text(encoding="utf-8")
        assert text.startswith("mprun: hang proved")
        assert text.splitlines()[0] in run.stderr
    assert count is None or len(entries) == count
    return reports


def check_not_touched(run: Run) -> None:
    assert run.summary()["hangs"] == []
    assert not (run.run_dir / "hangs").exists()
    assert "hang" not in run.stderr


# --- retry, the default ------------------------------------------------------------------------


def test_stuck_tasks_are_tried_again(run_job: RunCommand, start_method: str) -> None:
    """By default once more: ok if that works, else failed with the line of code it hung at."""
    items = ["a", "lock", "event 1", "b", "pipe 1", "c", "d", "e"]
    job = spec("work", items, start_method=start_method, processes=4)
    run = run_job(job, scripts=SCRIPTS).check(1)
    results = run.results()
    assert [result["task"] for result in results] == list(range(len(items)))
    failed = results.pop(1)
    assert [result["value"] for result in results] == [
        [item, 2 if item in ("event 1", "pipe 1") else 1] for item in items if item != "lock"
    ]
    assert (failed["status"], failed["attempt"]) == ("failed", 2)
    error = failed["error"]
    assert error["type"] == "Hung"
    assert place("lock") in error["message"]
    twice = [item for item in items if " " in item or item == "lock"]
    assert sorted(marks(run.run_dir.parent / "tried")) == sorted(items + twice)
    reports = check_hangs(run)
    assert all("deadlock" in report["verdict"] for report in reports)
    for how in ("lock", "event", "pipe"):
        assert any(place(how) in str(python_lines(report)) for report in reports), how


def python_lines(report: dict[str, Any]) -> list[str]:
    """All lines of Python in a report, as FILE:LINE."""
    return [
        f"{frame['file']}:{frame['line']}"
        for process in report["processes"]
        for thread in process["threads"]
        for frame in thread.get("python", [])
    ]


@pytest.mark.parametrize("retries", [0, 2])
def test_as_many_attempts_as_asked(run_job: RunCommand, retries: int) -> None:
    job = spec("work", ["event", "a"], retries={"on_hang": retries})
    run = run_job(job, scripts=SCRIPTS).check(1)
    stuck, well = run.results()
    assert (stuck["status"], stuck["attempt"]) == ("failed", retries + 1)
    assert stuck["error"]["type"] == "Hung"
    assert well["value"] == ["a", 1]
    assert sorted(marks(run.run_dir.parent / "tried")) == ["a"] + ["event"] * (retries + 1)
    reports = check_hangs(run, retries + 1)
    assert [report["deaths"] for report in reports] == [[]] * len(reports), "mprun killed them"


BUSY = f"""
import time
from pathlib import Path
import stuck

def is_tried_again():
    tried = Path("tried")
    return tried.exists() and tried.read_text().count("lock 1") == 2

def work(what):
    end = time.monotonic() + {LONGEST}
    while what == "a" and time.monotonic() < end:
        for number in range(100_000):
            pass
        if is_tried_again():
            break
    return stuck.work(what)
"""


def test_found_while_another_works(run_job: RunCommand) -> None:
    """A proof for one worker does not need the others to be at rest."""
    job = spec("work", ["lock 1", "a"], script="busy.py")
    run = run_job(job, scripts={**SCRIPTS, "busy.py": BUSY}).check()
    assert run.values() == [["lock 1", 2], ["a", 1]]
    (report,) = check_hangs(run, 1)
    assert report["verdict"] == "partial-deadlock"


MUTEX = f"""
import ctypes
import os
import threading
import time
from pathlib import Path

LOCK = ctypes.CDLL(None).pthread_mutex_lock
mutex = ctypes.create_string_buffer(64)

def start(function, *args):
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread

def go_on(is_done):
    end = time.monotonic() + {LONGEST}
    while not is_done() and time.monotonic() < end:
        time.sleep(0.05)

def work(what):
    if what == "a" or os.environ["MPRUN_ATTEMPT"] != "1":
        return what
    start(LOCK, mutex).join()  # it has ended, and the mutex is its own
    if what == "itself":
        start(go_on, lambda: False)
        LOCK(mutex)
    start(LOCK, mutex)
    go_on((Path(os.environ["MPRUN_RUN_DIR"]) / "hangs" / "1.json").exists)
    return what
"""


@pytest.mark.parametrize("what, attempts", [("itself", 2), ("beside", 1)])
def test_a_mutex_whose_owner_has_ended(run_job: RunCommand, what: str, attempts: int) -> None:
    """Threads of the worker go on. It is stuck itself if its first thread is."""
    run = run_job(spec("work", [what, "a"], script="mutex.py"), scripts={"mutex.py": MUTEX}).check()
    assert run.values() == [what, "a"]
    assert run.results()[0]["attempt"] == attempts
    (report,) = check_hangs(run, 1)
    assert report["verdict"] == "orphaned-lock"
    (process,) = report["processes"]
    assert [thread["state"] for thread in process["threads"]] == ["blocked for ever"]
    assert "has ended" in report["cause"]["explanation"]


def test_a_worker_whose_output_is_not_read(run_job: RunCommand) -> None:
    """It writes to a pipe of its own that is full."""
    run = run_job(spec("work", ["output 1", "a"]), scripts=SCRIPTS).check()
    assert run.values() == [["output 1", 2], ["a", 1]]
    (report,) = check_hangs(run, 1)
    assert place("output") in str(python_lines(report))


CHILD = """
import os
import subprocess
import sys
import threading
import time

STUCK = [sys.executable, "-c", "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()"]


def look_around():
    while True:
        time.sleep(0.2)


def work(how):
    if os.environ["MPRUN_ATTEMPT"] != "1":
        return how
    with subprocess.Popen(STUCK, stdout=subprocess.PIPE) as child:
        if how == "joins":
            threading.Thread(target=look_around, daemon=True).start()
            child.wait()
        try:
            child.communicate(timeout=4)
        except subprocess.TimeoutExpired:
            child.kill()
    return how
"""


@pytest.mark.parametrize("on_hang", ["kill", "retry"])
def test_a_worker_that_copes_with_a_stuck_child(run_job: RunCommand, on_hang: str) -> None:
    """It is reported, and left alone: its wait has a limit."""
    job = spec("work", ["copes"], script="child.py")
    run = run_job(job, "--on-hang", on_hang, scripts={"child.py": CHILD}).check()
    assert [(result["value"], result["attempt"]) for result in run.results()] == [("copes", 1)]
    (report,) = check_hangs(run, 1)
    assert report["verdict"] == "partial-deadlock"
    (running,) = report["still_runs"]
    assert running["call"] == "subprocess.Popen.communicate"
    assert 0 < running["ends_in_seconds"] <= 4


def test_a_worker_that_joins_a_stuck_child(run_job: RunCommand) -> None:
    """Its other thread runs, but does nothing about it."""
    job = spec("work", ["joins"], script="child.py")
    run = run_job(job, scripts={"child.py": CHILD}).check()
    assert [(result["value"], result["attempt"]) for result in run.results()] == [("joins", 2)]
    assert len(check_hangs(run)) == 2


FORKSERVER = """
import multiprocessing


def run(number):
    if number == 2:
        context = multiprocessing.get_context("forkserver")
        queue = context.Queue()
        child = context.Process(target=queue.put, args=(b"x" * 10_000_000,))
        child.start()
        child.join()
    return number
"""


def test_a_child_of_a_tasks_forkserver(run_job: RunCommand, start_method: str) -> None:
    """No other worker, and not their host, could have it start another."""
    job = spec("run", range(4), script="forks.py", start_method=start_method, retries={"on_hang": 0})
    run = run_job(job, scripts={"forks.py": FORKSERVER}).check(1)
    assert [result["status"] for result in run.results()].count("ok") == 3
    (report,) = check_hangs(run, 1)
    assert report["cause"]["id"] == "queue-not-drained"


MANAGER = """
import multiprocessing


def waits(number):
    if number == 2:
        multiprocessing.Manager().Queue().get()
    return number
"""


def test_a_tasks_manager(run_job: RunCommand, start_method: str) -> None:
    """Their host only forks: it could send the manager nothing."""
    job = spec("waits", range(4), script="manages.py", start_method=start_method, processes=1, retries={"on_hang": 0})
    run = run_job(job, scripts={"manages.py": MANAGER}).check(1)
    assert [result["status"] for result in run.results()].count("ok") == 3
    (report,) = check_hangs(run, 1)
    assert report["cause"]["id"] == "never-notified"


# --- kill, report ------------------------------------------------------------------------------


def test_kill_ends_the_job(run_job: RunCommand) -> None:
    """With 124; finished results are kept. (Every test checks that no process is left.)"""
    job = spec("work", ["a", "b", "lock"])
    run = run_job(job, "--on-hang", "kill", scripts=SCRIPTS).check(124)
    results = run.results()
    assert [result["value"] for result in results[:2]] == [["a", 1], ["b", 1]]
    assert results[2]["status"] != "ok"
    assert place("lock") in results[2]["error"]["message"]
    assert marks(run.run_dir.parent / "tried").count("lock") == 1
    assert run.summary()["exit_code"] == 124
    check_hangs(run, 1)


def test_a_hang_is_reported_once_and_the_job_goes_on(run_job: RunCommand) -> None:
    job = spec("work", ["lock", "a", "b"], limits={"job_seconds": 5, "grace_seconds": 0.5})
    run = run_job(job, "--on-hang", "report", scripts=SCRIPTS).check(124)
    results = run.results()
    assert [result["value"] for result in results[1:]] == [["a", 1], ["b", 1]]
    assert results[0]["status"] == "cancelled"
    assert results[0]["seconds"] >= 3  # the job's limit ended it, not the watch
    assert marks(run.run_dir.parent / "tried").count("lock") == 1
    check_hangs(run, 1)
    assert run.stderr.count("hang proved") == 1


# --- commands and ranks ------------------------------------------------------------------------


def test_a_command_that_hangs(run_job: RunCommand) -> None:
    """Also below a shell; another one that waits for a process outside is left alone."""
    program = "if [ {} = a ]; then sleep 2; else /usr/bin/python3 stuck.py {}; fi; true"
    job = {
        "command": ["sh", "-c", program],
        "inputs": {"items": ["lock", "a"]},
        "processes": 2,
        "retries": {"on_hang": 1},
        "limits": {"job_seconds": LONGEST},
    }
    run = run_job(job, scripts=SCRIPTS).check(1)
    stuck, well = run.results()
    assert (stuck["status"], stuck["attempt"], stuck["error"]["type"]) == ("failed", 2, "Hung")
    assert well["status"] == "ok"
    assert marks(run.run_dir.parent / "tried") == ["lock", "lock"]
    assert all(place("lock") in str(python_lines(report)) for report in check_hangs(run, 2))


def test_a_rank_that_hangs_ends_the_job(run_job: RunCommand) -> None:
    """There is no second attempt of one rank: 124, and the rank is named."""
    job = {"script": "stuck.py", "processes": 3, "limits": {"job_seconds": LONGEST}}
    run = run_job(job, scripts=SCRIPTS).check(124)
    assert sorted(marks(run.run_dir.parent / "ranks")) == ["0", "1", "2"]
    statuses = [result["status"] for result in run.results()]
    assert statuses == ["cancelled", "failed", "cancelled"]
    error = run.results()[1]["error"]
    assert error["type"] == "Hung"
    assert place("event") in error["message"]
    assert re.search(r"rank 1\b", run.stderr), run
    check_hangs(run, 1)


# --- what is not a hang ------------------------------------------------------------------------


def test_slow_tasks_are_not_touched(run_job: RunCommand, start_method: str) -> None:
    """Nor are the workers that are idle meanwhile."""
    items = ["sleep", "loop", "child", "lock"]
    job = spec("slow", items, start_method=start_method, processes=4, chunk_size=1)
    run = run_job(job, scripts=SCRIPTS).check()
    assert run.values() == items
    check_not_touched(run)


def test_a_command_that_waits_for_the_outside(run_job: RunCommand, tmp_path: Any) -> None:
    """Any process may open the other end of a named pipe."""
    job = {
        "command": ["sh", "-c", "mkfifo {}; cat <{}"],
        "inputs": {"items": ["fifo"]},
        "limits": {"job_seconds": 3, "grace_seconds": 0.5},
    }
    run = run_job(job, scripts=SCRIPTS).check(124)
    (result,) = run.results()
    assert result["status"] == "cancelled"
    check_not_touched(run)


# --- the end of a worker -----------------------------------------------------------------------


def test_a_worker_that_does_not_exit(run_job: RunCommand, start_method: str) -> None:
    """Its work is done, a thread of it waits forever: found, named and ended, nothing is lost."""
    job = spec("lingering", range(4), start_method=start_method)
    run = run_job(job, scripts=SCRIPTS).check()
    assert run.values() == [0, 1, 2, 3]
    (report,) = check_hangs(run, 1)
    assert "threading.py" in str(python_lines(report))
    assert "threading._shutdown" in report["join"]["call"]
    assert run.summary()["exit_code"] == 0


def test_a_setup_that_hangs(run_job: RunCommand) -> None:
    """There is no worker yet to try again: the job cannot be launched."""
    setup = "import threading\ndef warm_up():\n    threading.Event().wait()\ndef work(n):\n    return n\n"
    job = {"script": "cold.py", "function": "work", "setup": "warm_up", "inputs": {"range": 3}}
    run = run_job({**job, "limits": {"grace_seconds": 1}}, scripts={"cold.py": setup}).check(3)
    assert re.search(r"cannot launch the job: it hung while it was starting, at \S+cold.py:3", run.stderr)
    assert check_hangs(run, 1)[0]["verdict"] == "deadlock"
