"""Which task runs when, how often and for how long, and what is shared: for each start method."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import RunCommand, StartCommand


def job(text: str) -> dict[str, str]:
    """The files of a job: job.py and the module by which tasks and tests wait for each other."""
    return {"job.py": text, "events.py": harness.EVENTS}


# --- calls and results -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "items", "expected"),
    [
        ("item", [1, [2, 3], {"a": 4}], ["f(1)", "f([2, 3])", "f({'a': 4})"]),
        ("args", [[1], [2, 3], []], ["f(1)", "f(2, 3)", "f()"]),
        ("kwargs", [{"a": 1}, {"b": 2, "a": None}, {}], ["f(a=1)", "f(b=2, a=None)", "f()"]),
    ],
)
def test_call_styles(
    run_job: RunCommand, start_method: str, call: str, items: list[Any], expected: list[str]
) -> None:
    script = """
def f(*args, **kwargs):
    words = [repr(arg) for arg in args] + [f"{key}={value!r}" for key, value in kwargs.items()]
    return f"f({', '.join(words)})"
"""
    run = run_job(
        {
            "script": "job.py",
            "function": "f",
            "call": call,
            "start_method": start_method,
            "inputs": {"items": items},
        },
        scripts=job(script),
    )
    assert run.check().values() == expected


# Task 0 ends last; on its own it would never end.
FIRST_ENDS_LAST = """
from events import mark, wait_for


def run(number):
    if number == 0:
        wait_for("others", 5)
    else:
        mark("others")
    return number
"""


@pytest.mark.parametrize("order", ["input", "completion"])
def test_order_of_results(run_job: RunCommand, start_method: str, order: str) -> None:
    run = run_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "order": order,
            "processes": 2,
            "chunk_size": 1,
            "inputs": {"range": 6},
        },
        "--results",
        "-",
        scripts=job(FIRST_ENDS_LAST),
    ).check()
    streamed = [json.loads(line) for line in run.stdout.splitlines()]
    tasks = [result["task"] for result in streamed]
    assert sorted(tasks) == list(range(6))
    assert (tasks == list(range(6))) if order == "input" else (tasks[-1] == 0)
    assert streamed == [
        json.loads(line) for line in (run.run_dir / "results.jsonl").read_text().splitlines()
    ]


@pytest.mark.parametrize("order", ["input", "completion"])
def test_results_stream_while_the_job_runs(
    start_job: StartCommand, tmp_path: Path, order: str
) -> None:
    """By order: in input order up to the first task that has not ended, or as they end."""
    script = """
from events import mark, wait_for


def run(number):
    if number == 1:
        wait_for("go")
    return number
"""
    running = start_job(
        {
            "script": "job.py:run",
            "order": order,
            "processes": 2,
            "chunk_size": 1,
            "inputs": {"range": 4},
        },
        "--results",
        "-",
        scripts=job(script),
    )

    def streamed() -> list[int]:
        return [json.loads(line)["task"] for line in running.stdout.split("\n")[:-1]]

    early = {0} if order == "input" else {0, 2, 3}
    journal = running.run_dir / "results.jsonl"
    harness.wait_until(lambda: len(harness.marks(journal)) == 3, what="three tasks to end")
    harness.wait_until(lambda: set(streamed()) == early, what="the early results")
    (tmp_path / "go").write_text("\n")
    running.wait().check()
    assert streamed() == [0, 1, 2, 3] if order == "input" else streamed()[-1] == 1


def test_results_file(run_job: RunCommand, tmp_path: Path) -> None:
    run = run_job(
        {"script": "job.py:run", "processes": 2, "inputs": {"range": 6}},
        "--results",
        "copy.jsonl",
        scripts=job(FIRST_ENDS_LAST),
    ).check()
    copy = (tmp_path / "copy.jsonl").read_text()
    assert copy == (run.run_dir / "results.jsonl").read_text()
    assert run.stdout == ""


# --- which worker gets what --------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 7, "auto"])
def test_every_task_runs_once(run_job: RunCommand, start_method: str, chunk: int | str) -> None:
    script = """
from events import mark


def run(number):
    mark("runs", number)
    return -number
"""
    run = run_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "chunk_size": chunk,
            "processes": 3,
            "inputs": {"range": [0, 3000, 3]},
        },
        scripts=job(script),
    ).check()
    assert run.values() == [-number for number in range(0, 3000, 3)]
    runs = Counter(harness.marks(run.run_dir.parent / "runs"))
    assert runs == {str(number): 1 for number in range(0, 3000, 3)}


@pytest.mark.parametrize(("chunk", "slow"), [(1, 0), (50, 0), (50, 30), ("auto", 0), ("auto", 120)])
def test_one_long_task_delays_no_other(
    run_job: RunCommand, start_method: str, chunk: int | str, slow: int
) -> None:
    """It ends only after all others have, including those that were handed out with it."""
    script = f"""
from events import mark, wait_for


def run(number):
    if number == {slow}:
        wait_for("others", 199)
    else:
        mark("others", number)
"""
    run = run_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "chunk_size": chunk,
            "processes": 2,
            "inputs": {"range": 200},
        },
        scripts=job(script),
    ).check()
    assert set(Counter(harness.marks(run.run_dir.parent / "others")).values()) == {1}


def test_a_long_task_delays_no_other_while_input_is_slow(
    start_job: StartCommand, tmp_path: Path
) -> None:
    """Tasks handed out with it go to other workers even if more inputs may come."""
    script = """
from events import mark, wait_for


def run(line):
    if line == "slow":
        wait_for("others", 399)
    else:
        mark("others")
"""
    read_end, write_end = os.pipe()
    running = start_job(
        {"script": "job.py:run", "processes": 2, "inputs": {"lines": "-"}},
        scripts=job(script),
        stdin=read_end,
    )
    with open(write_end, "w", encoding="utf-8") as pipe:
        pipe.write("quick\n" * 200 + "slow\n" + "quick\n" * 199)
        pipe.flush()
        harness.wait_until(
            lambda: len(harness.marks(tmp_path / "others")) == 399,
            what="all others to end before the end of the input",
        )
    assert len(running.wait().check().values()) == 400


def test_all_workers_work(run_job: RunCommand, start_method: str) -> None:
    """Five tasks that wait for each other need five workers, whatever the number of CPUs."""
    script = """
import os

from events import mark, wait_for


def run(number):
    mark("here")
    wait_for("here", 5)
    return os.getpid()
"""
    run = run_job(
        {"script": "job.py:run", "start_method": start_method, "inputs": {"range": 5}},
        "-n",
        "5",
        scripts=job(script),
    ).check()
    assert len(set(run.values())) == 5
    assert {result["worker"] for result in run.results()} == set(range(5))


def test_tasks_per_worker(run_job: RunCommand, start_method: str) -> None:
    script = "import os\n\n\ndef run(number):\n    return os.getpid()\n"
    run = run_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "processes": 2,
            "limits": {"tasks_per_worker": 3},
            "inputs": {"range": 20},
        },
        scripts=job(script),
    ).check()
    pids = Counter(run.values())
    assert max(pids.values()) <= 3
    assert len(pids) >= 7
    workers = [p for p in run.summary()["processes"] if p["role"] == "worker"]
    assert {process["pid"] for process in workers} >= set(pids)
    assert {(process["exit_code"], process["expected"]) for process in workers} == {(0, True)}


def test_inputs_are_not_all_read_first(run_job: RunCommand) -> None:
    """Nine quadrillion of them: only the needed ones are read."""
    script = "def run(number):\n    if number == 1000:\n        raise ValueError('enough')\n"
    run = run_job(
        {
            "script": "job.py:run",
            "on_error": "stop",
            "inputs": {"range": 9_007_199_254_740_991},
        },
        scripts=job(script),
        timeout=30,
    ).check(1)
    counts = run.summary()["counts"]
    assert counts["total"] == 9_007_199_254_740_991
    assert counts["failed"] == 1
    assert 1000 <= counts["ok"] < 1_000_000


# --- failures ----------------------------------------------------------------------------------


def test_a_stop_ends_a_worker_whose_start_is_not_reported_yet(
    start_job: StartCommand, tmp_path: Path
) -> None:
    """The failure that stops the job and the report of the second worker's start arrive together."""
    script = """
import os

import events

forks = 0


def wait_for_the_failure():
    global forks
    forks += 1
    if forks == 2:
        events.wait_for("failed")
        with open("failed") as file:
            pid = int(file.readline())
        while open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "S":
            pass  # its failure is on its way when it waits for more to do


os.register_at_fork(before=wait_for_the_failure)


def run(number):
    events.mark("started")
    events.wait_for("stopped")
    events.mark("failed", os.getpid())
    raise ValueError("enough")
"""
    running = start_job(
        {
            "script": "job.py:run",
            "start_method": "fork",
            "processes": 2,
            "on_error": "stop",
            "inputs": {"range": 10},
        },
        scripts=job(script),
    )
    harness.wait_until(lambda: harness.marks(tmp_path / "started"), what="the first task")
    (supervisor,) = [child for child in running.children() if child.name == "mprun"]
    os.kill(supervisor.pid, signal.SIGSTOP)
    (tmp_path / "stopped").write_text("\n")

    def both_have_reported() -> bool:
        states = [child.state for child in running.children() if child.name != "mprun"]
        return len(states) == 3 and set(states) == {"S"}

    harness.wait_until(both_have_reported, what="the host and both workers")
    os.kill(supervisor.pid, signal.SIGCONT)
    run = running.wait(20).check(1)
    assert run.summary()["counts"]["failed"] == 1


def test_retries_on_error(run_job: RunCommand, start_method: str) -> None:
    script = """
import os


def run(needed):
    attempt = int(os.environ["MPRUN_ATTEMPT"])
    if attempt < needed:
        raise ValueError(f"attempt {attempt} of {needed}")
    return attempt
"""
    run = run_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "processes": 2,
            "retries": 2,
            "inputs": {"items": [1, 2, 3, 4]},
        },
        scripts=job(script),
    ).check(1)
    results = run.results()
    assert [result["status"] for result in results] == ["ok", "ok", "ok", "failed"]
    assert [result["attempt"] for result in results] == [1, 2, 3, 3]
    assert [result.get("value") for result in results] == [1, 2, 3, None]
    error = results[3]["error"]
    assert (error["type"], error["message"]) == ("ValueError", "attempt 3 of 4")
    assert 'job.py", line 8, in run' in error["traceback"]
    assert run.summary()["counts"]["retried"] == 5
    assert run.summary()["counts"]["failed"] == 1


def test_no_retry_on_error_by_default(run_job: RunCommand) -> None:
    run = run_job(
        {"script": "job.py:run", "inputs": {"items": [0, 1]}},
        scripts=job("def run(number):\n    return 1 / number\n"),
    ).check(1)
    failed, fine = run.results()
    assert failed["error"]["type"] == "ZeroDivisionError"
    assert failed["attempt"] == 1
    assert "value" not in failed
    assert fine["value"] == 1.0
    assert "error" not in fine
    assert re.search(r"task 0 failed: ZeroDivisionError: division by zero", run.stderr)


def test_delay_of_retries(run_job: RunCommand) -> None:
    """Other tasks run first while one waits for its next attempt."""
    script = """
import time

from events import mark


def run(number):
    mark(f"begin-{number}", time.monotonic())
    if number == 0:
        raise ValueError
"""
    run = run_job(
        {
            "script": "job.py:run",
            "processes": 1,
            "chunk_size": 1,
            "retries": {"on_error": 2, "delay": "300ms"},
            "inputs": {"range": 5},
        },
        scripts=job(script),
    ).check(1)
    first, second, third = map(float, harness.marks(run.run_dir.parent / "begin-0"))
    assert second - first >= 0.3
    assert third - second >= 0.3
    assert float(harness.marks(run.run_dir.parent / "begin-4")[0]) < second


# Tasks after number 5 take long enough for mprun to notice that number 5 failed.
FAILS_EARLY = """
import time


def run(number):
    if number in (5, 7, 9):
        raise ValueError(f"number {number}")
    if number > 5:
        time.sleep(0.02)
"""


@pytest.mark.parametrize(
    ("limits", "fewest"), [({"on_error": "stop"}, 1), ({"max_failures": 2}, 2)], ids=str
)
def test_failures_stop_the_job(
    run_job: RunCommand, start_method: str, limits: dict[str, Any], fewest: int
) -> None:
    run = run_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "processes": 2,
            "inputs": {"range": 1000},
            **limits,
        },
        scripts=job(FAILS_EARLY),
    ).check(1)
    counts = run.summary()["counts"]
    assert fewest <= counts["failed"] <= fewest + 2
    assert counts["ok"] < 500
    assert counts["not_run"] + counts["cancelled"] == 1000 - counts["ok"] - counts["failed"]
    statuses = Counter(result["status"] for result in run.results())
    assert (statuses["ok"], statuses["failed"]) == (counts["ok"], counts["failed"])


def test_failures_do_not_stop_the_job_by_default(run_job: RunCommand) -> None:
    run = run_job(
        {"script": "job.py:run", "processes": 2, "inputs": {"range": 20}},
        scripts=job(FAILS_EARLY),
    ).check(1)
    statuses = [result["status"] for result in run.results()]
    assert [number for number in range(20) if statuses[number] == "failed"] == [5, 7, 9]
    assert statuses.count("ok") == 17


# --- time limits -------------------------------------------------------------------------------

STUBBORN = """
import signal
import time

from events import mark


def run(number):
    mark(f"began-{number}")
    if number == 2:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if number == 1:
        signal.signal(signal.SIGTERM, lambda *_: (mark("terminated"), exit(0)))
    while number in (1, 2):
        time.sleep(0.01)
    return number
"""


@pytest.mark.parametrize("retries", [0, 1])
def test_task_limit(run_job: RunCommand, start_method: str, retries: int) -> None:
    """TERM, grace, KILL; the task counts as one whose worker died, the others are not affected."""
    run = run_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "processes": 2,
            "retries": {"on_death": retries},
            "limits": {"task_seconds": 0.4, "grace_seconds": 0.2},
            "inputs": {"range": 6},
        },
        scripts=job(STUBBORN),
    ).check(1)
    for task, result in enumerate(run.results()):
        if task in (1, 2):
            assert result["status"] == "failed"
            assert result["error"]["type"] == "Timeout"
            assert "0.4" in result["error"]["message"]
            assert result["attempt"] == 1 + retries
        else:
            assert (result["status"], result["value"], result["attempt"]) == ("ok", task, 1)
        began = len(harness.marks(run.run_dir.parent / f"began-{task}"))
        assert began == (1 + retries if task in (1, 2) else 1)
    assert len(harness.marks(run.run_dir.parent / "terminated")) == 1 + retries


def test_a_late_task_does_not_harm_the_next_one(run_job: RunCommand, start_method: str) -> None:
    """A task that ends after TERM, within its grace, leaves the tasks queued after it untouched."""
    script = """
import signal
import time

from events import mark

late = []
signal.signal(signal.SIGTERM, lambda *_: late.append(True))


def run(number):
    mark(f"began-{number}")
    while number == 0 and not late:
        time.sleep(0.01)
    if number > 0:
        time.sleep(0.25)
    return number
"""
    run = run_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "processes": 1,
            "chunk_size": 4,
            "limits": {"task_seconds": 0.4, "grace_seconds": 0.1},
            "inputs": {"range": 4},
        },
        scripts=job(script),
    )
    for task, result in list(enumerate(run.results()))[1:]:
        assert (result["status"], result["attempt"]) == ("ok", 1), result
        assert len(harness.marks(run.run_dir.parent / f"began-{task}")) == 1, task


def test_task_limit_counts_each_task_alone(run_job: RunCommand) -> None:
    """The tasks of a chunk may take longer together."""
    script = "import time\n\n\ndef run(number):\n    time.sleep(0.15)\n    return number\n"
    run = run_job(
        {
            "script": "job.py:run",
            "processes": 1,
            "chunk_size": 8,
            "limits": {"task_seconds": 0.6},
            "inputs": {"range": 8},
        },
        scripts=job(script),
    ).check()
    assert run.values() == list(range(8))


def test_job_limit(run_job: RunCommand, start_method: str) -> None:
    """Results so far are kept, running tasks are ended and named."""
    script = """
import time


def run(number):
    while number >= 2:
        time.sleep(0.01)
    return number
"""
    run = run_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "processes": 2,
            "chunk_size": 1,
            "limits": {"job_seconds": "1500ms", "grace_seconds": 0.3},
            "inputs": {"range": 8},
        },
        scripts=job(script),
        timeout=20,
    ).check(124)
    results = run.results()
    assert [result.get("value") for result in results[:2]] == [0, 1]
    assert [result["status"] for result in results] == ["ok"] * 2 + ["cancelled"] * 2
    assert "job_seconds" in results[2]["error"]["message"]
    assert run.summary()["exit_code"] == 124
    assert run.summary()["counts"]["not_run"] == 4


@pytest.mark.parametrize(
    "hold",
    ["threading.Thread(target=forever).start()", "atexit.register(forever)"],
    ids=["thread", "exit-handler"],
)
def test_join_limit(run_job: RunCommand, start_method: str, hold: str) -> None:
    """A worker that does not end after its last task is ended; its results are kept."""
    script = f"""
import atexit
import threading
import time


def forever():
    while True:
        time.sleep(0.01)


def run(number):
    if number == 0:
        {hold}
    return number
"""
    run = run_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "processes": 2,
            "limits": {"join_seconds": 0.5, "grace_seconds": 0.2},
            "inputs": {"range": 10},
        },
        scripts=job(script),
        timeout=20,
    ).check()
    assert run.values() == list(range(10))
    assert "join_seconds" in run.stderr
    assert any("join_seconds" in notice["text"] for notice in run.summary()["notices"])


def test_a_stopped_task_reaches_its_limit(run_job: RunCommand) -> None:
    """A process in state T does not handle TERM: KILL follows."""
    script = "import os\n\n\ndef run(number):\n    os.kill(os.getpid(), 19)\n"
    run = run_job(
        {
            "script": "job.py:run",
            "retries": {"on_death": 0},
            "limits": {"task_seconds": 0.3, "grace_seconds": 0.2},
            "inputs": {"range": 1},
        },
        scripts=job(script),
        timeout=20,
    ).check(1)
    assert run.results()[0]["error"]["type"] == "Timeout"


def test_job_limit_while_workers_end(run_job: RunCommand, start_method: str) -> None:
    """It limits the whole job: also workers that do not end after their last task."""
    script = """
import threading
import time


def run(number):
    threading.Thread(target=time.sleep, args=(600,)).start()
    return number
"""
    began = time.monotonic()
    run = run_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "processes": 2,
            "limits": {"job_seconds": 3, "join_seconds": 30, "grace_seconds": 0.2},
            "inputs": {"range": 4},
        },
        scripts=job(script),
    ).check(124)
    assert time.monotonic() - began < 15
    assert run.values() == [0, 1, 2, 3]


# --- what is shared ----------------------------------------------------------------------------

COUNTED_SETUP = """
import os

from events import mark, wait_for

state = []


def setup():
    mark("setup", os.getpid())
    state.append(os.getpid())


def worker_setup():
    mark("worker_setup", os.getpid())
    state.append(os.getpid())


def run(number):
    mark("here")
    wait_for("here", 3)
    return [os.getpid(), state]
"""


def test_setup_and_worker_setup(run_job: RunCommand, start_method: str) -> None:
    """`setup` once before the first fork, else in each worker; `worker_setup` in each, after it."""
    run = run_job(
        {
            "script": "job.py:run",
            "setup": "setup",
            "worker_setup": "worker_setup",
            "start_method": start_method,
            "processes": 3,
            "inputs": {"range": 3},
        },
        scripts=job(COUNTED_SETUP),
    ).check()
    setups = harness.marks(run.run_dir.parent / "setup")
    workers = {pid for pid, _ in run.values()}
    assert sorted(map(int, harness.marks(run.run_dir.parent / "worker_setup"))) == sorted(workers)
    if start_method == "fork":
        assert len(setups) == 1
        assert int(setups[0]) not in workers
        assert all(state == [int(setups[0]), pid] for pid, state in run.values())
    else:
        assert sorted(map(int, setups)) == sorted(workers)
        assert all(state == [pid, pid] for pid, state in run.values())


def test_replacements_are_started_the_same_way(run_job: RunCommand, start_method: str) -> None:
    """A replacement worker finds what the first one found."""
    script = """
import os

from events import mark

state = []


def setup():
    state.append("setup")


def worker_setup():
    state.append("worker_setup")


def run(number):
    if number == 3 and os.environ["MPRUN_ATTEMPT"] == "1":
        os.abort()
    return state
"""
    run = run_job(
        {
            "script": "job.py:run",
            "setup": "setup",
            "worker_setup": "worker_setup",
            "start_method": start_method,
            "processes": 1,
            "limits": {"tasks_per_worker": 5},
            "inputs": {"range": 12},
        },
        scripts=job(script),
    ).check()
    assert run.values() == [["setup", "worker_setup"]] * 12


def test_preload(run_job: RunCommand, start_method: str) -> None:
    """What the host has imported is present in every worker, and was imported once."""
    scripts = {
        **job("import os, heavy\n\n\ndef run(_):\n    return [heavy.PID, os.getpid()]\n"),
        "heavy.py": "import os, events\nPID = os.getpid()\nevents.mark('imported', PID)\n",
    }
    run = run_job(
        {
            "script": "job.py:run",
            "preload": ["heavy"],
            "start_method": start_method,
            "processes": 2,
            "limits": {"tasks_per_worker": 2},
            "inputs": {"range": 4},
        },
        scripts=scripts,
    ).check()
    imported = set(map(int, harness.marks(run.run_dir.parent / "imported")))
    if start_method == "spawn":
        assert all(heavy == own for heavy, own in run.values())
    else:
        assert len(imported) == 1
        assert {heavy for heavy, _ in run.values()} == imported


DRAWS = """
import os
import random

import numpy
import torch

from events import mark, wait_for

drawn = []


def setup():
    drawn.append(random.random())


def run(number):
    values = [random.random(), float(numpy.random.rand()), float(torch.rand(1))]
    values += [sorted(hash(word) for word in ("a", "b", "c"))]
    return [drawn, values, torch.get_num_threads()]
"""


def test_a_seed_makes_results_equal(run_job: RunCommand) -> None:
    """For every start method and any number of workers; and another seed gives other results."""
    seen = []
    for method, workers, seed in (
        ("fork", 1, 7),
        ("fork", 3, 7),
        ("spawn", 2, 7),
        ("forkserver", 3, 7),
        ("fork", 1, 8),
    ):
        run = run_job(
            {
                "script": "job.py:run",
                "setup": "setup",
                "preload": ["numpy", "torch"],
                "start_method": method,
                "processes": workers,
                "threads_per_worker": 3,
                "chunk_size": 1,
                "seed": seed,
                "inputs": {"range": 6},
            },
            scripts=job(DRAWS),
        ).check()
        values = run.values()
        assert {threads for *_, threads in values} == {3}
        seen.append([value[:2] for value in values])
    assert seen[1] == seen[0]
    assert seen[2] == seen[0]
    assert seen[3] == seen[0]
    assert seen[4] != seen[0]
    for column in range(3):  # no two tasks draw the same
        assert len({values[column] for _, values in seen[0]}) == 6


def test_a_seed_reaches_what_the_script_draws_at_import(run_job: RunCommand) -> None:
    """Weights made at module level are the same in every worker, however it was started."""
    script = """
import random

WEIGHT = random.random()


def run(number):
    return WEIGHT
"""
    seen = set()
    for method in ("fork", "spawn", "forkserver"):
        run = run_job(
            {
                "script": "job.py:run",
                "start_method": method,
                "processes": 2,
                "chunk_size": 1,
                "seed": 7,
                "inputs": {"range": 4},
            },
            scripts=job(script),
        ).check()
        seen.update(run.values())
    assert len(seen) == 1


def test_a_seed_reaches_what_a_task_imports(run_job: RunCommand) -> None:
    """Generators of modules that were not imported before the first task are seeded too."""
    script = """
def run(number):
    import random

    import numpy

    return [random.random(), float(numpy.random.rand())]
"""
    seen = []
    for method, workers in (("fork", 1), ("spawn", 3), ("forkserver", 2)):
        run = run_job(
            {
                "script": "job.py:run",
                "start_method": method,
                "processes": workers,
                "chunk_size": 1,
                "seed": 7,
                "inputs": {"range": 6},
            },
            scripts=job(script),
        ).check()
        seen.append(run.values())
    assert seen[0] == seen[1] == seen[2]


def test_a_seed_reaches_a_generator_that_is_imported_late(run_job: RunCommand, start_method: str) -> None:
    """As numpy 2 does at the first use of numpy.random, which imports random."""
    scripts = {
        "numpy/__init__.py": "def __getattr__(name):\n    if name == 'random':\n        import numpy.random as random\n"
        "        return random\n    raise AttributeError(name)\n",
        "numpy/random.py": "import random\n\ndef seed(number):\n    global planted\n    planted = number\n",
        "job.py": "import numpy\n\ndef run(number):\n    return numpy.random.planted\n",
    }
    spec = {"script": "job.py:run", "start_method": start_method, "processes": 2, "seed": 7, "inputs": {"range": 4}}
    planted = run_job(spec, scripts=scripts).check().values()
    assert len(set(planted)) == 4


def test_without_a_seed_workers_draw_differently(run_job: RunCommand, start_method: str) -> None:
    script = """
import random

import numpy

from events import mark, wait_for


def run(number):
    mark("here")
    wait_for("here", 3)
    return [random.random(), numpy.random.random()]  # a fork makes Python draw anew, and not numpy
"""
    run = run_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "processes": 3,
            "inputs": {"range": 3},
        },
        scripts=job(script),
    ).check()
    for draws in zip(*run.values()):
        assert len(set(draws)) == 3


THREAD_VARIABLES = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]


@pytest.mark.parametrize(
    ("asked", "outside", "expected"),
    [
        (5, {}, ["5", "5", "5"]),
        (5, {"OMP_NUM_THREADS": "9"}, ["5", "5", "5"]),
        ("auto", {"OMP_NUM_THREADS": "9"}, ["9", None, None]),
        ("auto", {}, [None, None, None]),
    ],
)
def test_threads_per_worker(
    run_job: RunCommand,
    start_method: str,
    asked: int | str,
    outside: dict[str, str],
    expected: list[str | None],
) -> None:
    cpus = str(max(1, len(os.sched_getaffinity(0)) // 2))
    run = run_job(
        {
            "script": "job.py:run",
            "start_method": start_method,
            "processes": 2,
            "threads_per_worker": asked,
            "inputs": {"range": 4},
        },
        scripts=job(
            f"import os\n\n\ndef run(_):\n    return [os.environ[n] for n in {THREAD_VARIABLES}]\n"
        ),
        env=outside,
    ).check()
    assert run.values() == [[value or cpus for value in expected]] * 4


def test_workers_share_what_setup_made(run_job: RunCommand) -> None:
    """With fork, 200 MB made in `setup` cost a worker next to nothing."""
    script = """
import numpy

data = []


def setup():
    data.append(numpy.ones(25_000_000))


def run(_):
    total = float(data[0].sum())
    with open("/proc/self/smaps_rollup") as rollup:
        for line in rollup:
            if line.startswith("Private_Dirty:"):
                return [total, int(line.split()[1])]
"""
    run = run_job(
        {"script": "job.py:run", "setup": "setup", "processes": 2, "inputs": {"range": 4}},
        scripts=job(script),
    ).check()
    for total, private_kb in run.values():
        assert total == 25_000_000
        assert private_kb < 50_000
