"""What the processes of a job share by name, with every start method: all find it, and it outlives its holder."""

from __future__ import annotations

import re
from typing import Any

import pytest

from harness import EVENTS, MPRUN_PYTHON, RunCommand

# Only a wait that never ends lets a test take so long.
LONGEST = 60

SHARED = """
import os
import select
import signal
import subprocess
import sys
import time

import mprun
from events import mark, wait_for


def meet(number):
    \"\"\"Each worker has one of the tasks, which need each other.\"\"\"
    arrival = mprun.barrier("all", 3).wait()
    mprun.counter("sum").add(number)
    mprun.queue("arrivals").put((number, arrival))
    with mprun.lock("log"):
        seen = mprun.dict("seen")
        seen["tasks"] = seen.get("tasks", []) + [number]
    mprun.barrier("all", 3).wait()
    if number == 0:
        arrivals = [mprun.queue("arrivals").get() for _ in range(3)]
        return [mprun.counter("sum").value, sorted(arrivals), sorted(seen["tasks"])]
    return None


def hold_and_die(number):
    if number == 1 and os.environ["MPRUN_ATTEMPT"] == "1":
        mprun.lock("log").acquire()
        mark("held", os.getpid())
        wait_for("asked")
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 0:
        wait_for("held")
        free = mprun.lock("log").acquire(blocking=False)
        mark("asked")
        with mprun.lock("log") as log:
            dead = log.dead_holder
        with mprun.lock("log") as log:
            return [free, dead, log.dead_holder]
    return None


def die_at_the_barrier(number):
    barrier = mprun.barrier("two", 2)
    if number == 1 and os.environ["MPRUN_ATTEMPT"] == "1":
        mark("waits", os.getpid())
        barrier.wait()
    if number == 0:
        wait_for("waits")
        with open("waits") as file:
            pid = int(file.readline())
        while barrier.n_waiting == 0:  # each such loop waits for what has no event
            time.sleep(0.001)
        ended = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        select.select([ended], [], [])
        assert barrier.n_waiting == 0
        mark("comes", os.getpid())
    wait_for("comes")  # the next attempt would take the seat of the dead one
    return barrier.wait()


def descend(number):
    \"\"\"A program that a task starts finds what the tasks share.\"\"\"
    program = "import mprun; mprun.queue('jobs').put(mprun.counter('children').add())"
    path = os.path.dirname(os.path.dirname(mprun.__file__))
    subprocess.run([sys.executable, "-c", "import sys; sys.path.append(%r); " % path + program], check=True)
    return mprun.queue("jobs").get()


def ranks():
    arrival = mprun.barrier().wait()
    total = mprun.counter("total").add(mprun.rank())
    mprun.barrier().wait()
    mprun.result([arrival, mprun.counter("total").value])
"""

SCRIPTS = {"job.py": SHARED, "events.py": EVENTS}


def spec(function: str, tasks: int, start_method: str, **fields: Any) -> dict[str, Any]:
    return {
        "script": f"job.py:{function}",
        "start_method": start_method,
        "processes": tasks,
        "inputs": {"range": tasks},
        **fields,
    }


def test_workers_share_what_they_name(run_job: RunCommand, start_method: str) -> None:
    run = run_job(spec("meet", 3, start_method), scripts=SCRIPTS, timeout=LONGEST).check()
    total, arrivals, tasks = run.values()[0]
    assert (total, tasks) == (3, [0, 1, 2])
    assert [number for number, _ in arrivals] == [0, 1, 2]
    assert sorted(arrival for _, arrival in arrivals) == [0, 1, 2]
    assert run.stderr.count("warning") == 0


def test_the_next_one_gets_the_lock_of_a_dead_worker(
    run_job: RunCommand, start_method: str
) -> None:
    run = run_job(spec("hold_and_die", 2, start_method), scripts=SCRIPTS, timeout=LONGEST).check()
    free, dead, later = run.values()[0]
    assert (free, later) == (False, None)
    assert re.fullmatch(r"worker [01] \(pid \d+\), task 1", dead)
    worker, pid = re.findall(r"\d+", dead)[:2]
    warning = (
        f"mprun: warning: worker {worker} (pid {pid}) ended in task 1 while it held the lock "
        '"log"; the next one who asks gets it'
    )
    assert run.stderr.splitlines().count(warning) == 1


def test_a_process_that_dies_at_the_barrier_has_not_arrived(run_job: RunCommand, start_method: str) -> None:
    run = run_job(spec("die_at_the_barrier", 2, start_method), scripts=SCRIPTS, timeout=LONGEST)
    assert sorted(run.check().values()) == [0, 1]


def test_programs_that_tasks_start_share_it_too(run_job: RunCommand, start_method: str) -> None:
    run = run_job(spec("descend", 2, start_method), scripts=SCRIPTS, timeout=LONGEST).check()
    assert sorted(run.values()) == [1, 2]


def test_ranks_meet_at_the_barrier(run_job: RunCommand, start_method: str) -> None:
    script = SHARED + "\n\nranks()\n"
    job = {"script": "job.py", "start_method": start_method, "processes": 3}
    run = run_job(job, scripts={**SCRIPTS, "job.py": script}, timeout=LONGEST).check()
    assert sorted(arrival for arrival, _ in run.values()) == [0, 1, 2]
    assert {total for _, total in run.values()} == {3}


# --- hangs -------------------------------------------------------------------------------------

STUCK = """
import mprun


def cross(number):
    one, other = ("a", "b") if number == 0 else ("b", "a")
    with mprun.lock(one):
        mprun.barrier("both hold one", 2).wait()
        with mprun.lock(other):  # stuck
            pass


def starve(number):
    return mprun.queue("jobs").get()  # stuck


def wait_short(number):
    return mprun.barrier("all", 3).wait()  # stuck
"""


@pytest.mark.parametrize(
    ("function", "cause", "objects"),
    [
        ("cross", "lock-cycle", {'lock "a", held by worker', 'lock "b", held by worker'}),
        ("starve", "never-notified", {'queue "jobs"'}),
        ("wait_short", "barrier-short", {'barrier "all"'}),
    ],
)
def test_waits_that_no_process_can_end_are_proved(
    run_job: RunCommand, start_method: str, function: str, cause: str, objects: set[str]
) -> None:
    job = spec(function, 2, start_method, watch={"on_hang": "kill"})
    run = run_job(job, scripts={"job.py": STUCK}, timeout=LONGEST).check(124)
    hang = run.hangs()[0]
    # A host, which waits for mprun, is not part of the deadlock.
    verdict = "deadlock" if start_method == "spawn" else "partial-deadlock"
    assert (hang["verdict"], hang["cause"]["id"]) == (verdict, cause)
    waits = [
        thread["wait"]["object"]
        for process in hang["processes"]
        for thread in process["threads"]
        if thread["wait"]["kind"] == "shared-futex"
    ]
    assert {re.sub(r"(worker) \d+ \(pid \d+\)$", r"\1", wait) for wait in waits} == objects
    assert hang["join"]["file"].endswith("job.py")
    line = STUCK.splitlines()[hang["join"]["line"] - 1]
    assert "# stuck" in line
    if cause == "lock-cycle":
        assert "held by worker 0" in hang["cause"]["explanation"]
        assert "held by worker 1" in hang["cause"]["explanation"]


# The first attempt of task 1 fails; until the second, the only process that runs is the one that waits for it.
LATER = """
import os
import sys
import mprun

if sys.argv[1] == "0":
    print(mprun.queue("jobs").get())
elif os.environ["MPRUN_ATTEMPT"] == "1":
    sys.exit(1)
else:
    mprun.queue("jobs").put("at last")
"""


def test_a_task_that_will_be_tried_again_may_still_come(run_job: RunCommand) -> None:
    job = {
        "command": [MPRUN_PYTHON, "later.py", "{}"],
        "processes": 2,
        "inputs": {"range": 2},
        "retries": {"on_error": 1, "delay": 3},
        "watch": {"on_hang": "kill"},
    }
    run = run_job(job, scripts={"later.py": LATER}, timeout=LONGEST).check()
    assert run.log(0) + run.log(1) == "at last\n"
    assert run.hangs() == []
