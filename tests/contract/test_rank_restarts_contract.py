"""Ranks start again, all of them, after the failure of one: `retries`, as torchrun's --max-restarts."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy
import pytest

import harness
from harness import Run, RunCommand, StartCommand


def ranks(text: str) -> dict[str, str]:
    """The files of a job of ranks."""
    head = """
import ctypes
import json
import os
import signal
import sys
import threading
import time

import mprun
from events import mark, wait_for

rank = mprun.rank()
attempt = int(os.environ["MPRUN_ATTEMPT"])
"""
    return {"ranks.py": head + text, "events.py": harness.EVENTS}


def job(start_method: str, processes: int, retries: Any, **more: Any) -> dict[str, Any]:
    return {
        "script": "ranks.py",
        "start_method": start_method,
        "processes": processes,
        "retries": retries,
        **more,
    }


def retried(run: Run) -> list[tuple[int, int, str]]:
    """Rank, attempt and reason of each attempt that was repeated."""
    lines = (run.run_dir / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines if '"retried"' in line]
    return [(line["retried"]["task"], line["retried"]["attempt"], line["retried"]["reason"]) for line in found]


# Ranks 0 and 2 would wait for long; rank 1 fails in the first two attempts.
FAILS_TWICE = """
mark(f"port{attempt}", os.environ["MASTER_PORT"])
wait_for(f"port{attempt}", 3)
if attempt < 3 and rank == 1:
    raise RuntimeError(f"attempt {attempt} is out of luck")
if attempt < 3:
    time.sleep(60)
names = ["TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "MPRUN_ATTEMPT", "RANK", "LOCAL_RANK", "MPRUN_TASK"]
mprun.result([os.environ[name] for name in names])
"""


def test_they_start_again_until_all_end_well(run_job: RunCommand, start_method: str) -> None:
    """Each attempt has a port of its own; the results are those of the last one."""
    run = run_job(job(start_method, 3, 3), scripts=ranks(FAILS_TWICE), timeout=40).check()
    assert run.values() == [["2", "3", "3", rank, rank, rank] for rank in "012"]
    assert [(result["attempt"], result["worker"]) for result in run.results()] == [(3, 0), (3, 1), (3, 2)]
    ports = [set(harness.marks(run.run_dir.parent / f"port{attempt}")) for attempt in (1, 2, 3)]
    assert [len(port) for port in ports] == [1, 1, 1]
    assert len(set.union(*ports)) == 3
    for attempt in (1, 2):
        notice = f"rank 1 failed (RuntimeError: attempt {attempt} is out of luck): all 3 ranks start again, {attempt} of 3"
        assert run.stderr.count(notice) == 1
    assert "Traceback" in run.stderr
    assert "is tried again" not in run.stderr  # the notice speaks of all
    assert sorted(retried(run)) == [
        (rank, attempt, f"RuntimeError: attempt {attempt} is out of luck" if rank == 1 else "another rank failed")
        for rank in range(3)
        for attempt in (1, 2)
    ]
    assert run.summary()["counts"]["retried"] == 6
    assert len(run.joblog()) == 3


def test_the_last_failure_ends_the_job(run_job: RunCommand, start_method: str) -> None:
    script = """
mark(f"begun{attempt}")
wait_for(f"begun{attempt}", 2)
if rank == 1:
    raise RuntimeError(f"attempt {attempt} is out of luck")
time.sleep(60)
"""
    run = run_job(job(start_method, 2, 1), scripts=ranks(script), timeout=40).check(1)
    results = run.results()
    assert [(result["status"], result["attempt"]) for result in results] == [("cancelled", 2), ("failed", 2)]
    assert results[1]["error"]["message"] == "attempt 2 is out of luck"
    assert "rank 1 failed; the others are ended" in run.stderr


@pytest.mark.parametrize(
    ("end", "name", "reason"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "on_death", "Signal: rank 1 ended with signal 9"),
        ("ctypes.string_at(0)", "on_death", "Signal: rank 1 ended with signal 11"),
        ("os._exit(6)", "on_error", "ExitCode: rank 1 ended with exit code 6"),
    ],
)
def test_each_cause_has_retries_of_its_own(
    run_job: RunCommand, start_method: str, end: str, name: str, reason: str
) -> None:
    script = f"""
import resource

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
mark(f"begun{{attempt}}")
wait_for(f"begun{{attempt}}", 2)
if attempt == 1 and rank == 1:
    {end}
if attempt == 1:
    time.sleep(60)
mprun.result(attempt)
"""
    run = run_job(job(start_method, 2, {name: 1}), scripts=ranks(script), timeout=40).check()
    assert run.values() == [2, 2]
    assert retried(run)[0][2].startswith(reason)
    for mark in run.run_dir.parent.glob("begun*"):
        mark.unlink()
    other = {"on_error": 1} if name == "on_death" else {"on_death": 1}
    spec = job(start_method, 2, {**other, "on_hang": 1})
    assert retried(run_job(spec, scripts=ranks(script), timeout=40).check(1)) == []


def test_without_retries_none_starts_again(run_job: RunCommand, start_method: str) -> None:
    """Though tasks of functions have one more attempt after a death."""
    script = """
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
mprun.result([os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["TORCHELASTIC_MAX_RESTARTS"]])
if os.environ.get("WAITS"):
    time.sleep(60)
"""
    spec = {"script": "ranks.py", "start_method": start_method, "processes": 2}
    run = run_job(spec, scripts=ranks(script), timeout=40).check(1)
    assert retried(run) == []
    run = run_job({**spec, "processes": 1}, scripts=ranks(script), timeout=40).check()
    assert run.values() == [["0", "0"]]


def test_one_that_ended_well_runs_again(run_job: RunCommand, start_method: str) -> None:
    """Its result is held until no failure can follow, and given up when one does; so are its tensors."""
    script = """
import numpy


def has_ended(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # reaped before or after open()
        return True


if rank == 0:
    mark(f"pid{attempt}", os.getpid())
    mprun.result({"rows": numpy.full(3, attempt), "of": attempt})
    sys.exit(0)
wait_for(f"pid{attempt}")
pid = int(open(f"pid{attempt}").read())
while not has_ended(pid):
    time.sleep(0.01)
if attempt == 1:
    raise RuntimeError("too bad")
"""
    run = run_job(job(start_method, 2, 1), scripts=ranks(script), timeout=40).check()
    assert run.results()[0]["value"]["of"] == 2
    assert numpy.load(run.run_dir / "tensors" / "rows.npy").tolist()[0] == [2, 2, 2]
    assert sorted(retried(run)) == [(0, 1, "another rank failed"), (1, 1, "RuntimeError: too bad")]


def test_a_rank_that_hangs(run_job: RunCommand, start_method: str) -> None:
    """It waits at a barrier for one that has ended; the next attempt has a barrier of its own."""
    script = """
if attempt == 1 and rank == 1:
    sys.exit(0)
mprun.barrier().wait()
mprun.result(attempt)
"""
    spec = job(start_method, 2, {"on_hang": 1})
    run = run_job(spec, scripts=ranks(script), timeout=60).check()
    assert run.values() == [2, 2]
    assert "rank 0 hung" in run.stderr
    assert len(run.hangs()) == 1
    assert sorted(task for task, _, _ in retried(run)) == [0, 1]
    script = script.replace("attempt == 1 and", "")
    run = run_job(spec, scripts=ranks(script), timeout=60).check(124)
    assert [(result["status"], result["attempt"]) for result in run.results()] == [("failed", 2), ("ok", 2)]


def test_what_ranks_share_begins_anew(run_job: RunCommand, start_method: str) -> None:
    """Locks that dead ranks held are free, counters 0, queues and dicts empty; what `preload` made is there."""
    script = """
import made_before

assert mprun.counter("made before").value == (7 if made_before.in_host else 0)
counter, queue, table = mprun.counter("starts"), mprun.queue("work"), mprun.dict("notes")
found = [counter.value, len(table), queue.qsize()] if rank == 0 else None
mark(f"looked{attempt}")
wait_for(f"looked{attempt}", 2)
counter.add()
queue.put("x" * 1000)
table[rank] = "y" * 100_000
mprun.barrier().wait()
if attempt == 1:
    if rank == 1:
        mprun.lock("held").acquire()
        mark("held")
        os._exit(3)
    wait_for("held")
    mprun.barrier().wait()
assert mprun.lock("held").acquire(timeout=20)
mprun.lock("held").release()
mprun.result(found)
"""
    before = """
import os

import mprun

in_host = "MPRUN_TASK" not in os.environ
if in_host:
    mprun.counter("made before").add(7)
"""
    spec = job(start_method, 2, 1, preload=["made_before"])
    run = run_job(spec, scripts={**ranks(script), "made_before.py": before}, timeout=60).check()
    assert run.values() == [[0, 0, 0], None]


def test_the_delay_between_attempts(run_job: RunCommand, start_method: str) -> None:
    script = """
mark("times", time.monotonic())
if attempt < 3:
    sys.exit(1)
"""
    spec = job(start_method, 1, {"on_error": 2, "delay": 0.3, "backoff": 2})
    run = run_job(spec, scripts=ranks(script), timeout=40).check()
    first, second, third = map(float, harness.marks(run.run_dir.parent / "times"))
    assert second - first >= 0.3
    assert third - second >= 0.6
    assert "rank 0 failed (ExitCode: rank 0 ended with exit code 1): it starts again, 1 of 2" in run.stderr


@pytest.mark.parametrize("other", ["has ended", "is being ended"])
def test_a_stop_while_they_wait(
    start_mprun: StartCommand, start_job: StartCommand, start_method: str, other: str
) -> None:
    """As tasks that wait for their retry: none has failed, and `mprun resume` runs them all."""
    script = f"""
if {other!r} == "is being ended" and rank == 0 and not os.path.exists("go"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    mark("deaf")
    wait_for("never", seconds=600)
if rank == 1 and not os.path.exists("go"):
    if {other!r} == "is being ended":
        wait_for("deaf")
    sys.exit(1)
mprun.result(attempt)
"""
    spec = job(start_method, 2, {"on_error": 1, "delay": 600}, limits={"grace_seconds": 2})
    running = start_job(spec, scripts=ranks(script))
    harness.wait_until(lambda: "start again" in running.stderr, what="the notice")
    running.send_signal(signal.SIGINT)
    run = running.wait().check(130)
    assert "failed" not in {result["status"] for result in run.results()}
    (run.run_dir.parent / "go").touch()
    start_mprun("resume", run.run_dir, output=False).wait().check()
    assert run.values() == [1, 1]


@pytest.mark.parametrize("attempts", [1, 2])
def test_error_files(run_job: RunCommand, start_method: str, attempts: int) -> None:
    """What a rank wrote there explains its failure, if it says nothing itself; what an earlier attempt wrote is gone."""
    script = """
file = os.environ["TORCHELASTIC_ERROR_FILE"]
assert not os.path.exists(file)
if rank == 0:
    time.sleep(60)
extra = {"py_callstack": "Traceback: far away", "timestamp": "1"}
text = json.dumps({"message": {"message": f"ValueError: attempt {attempt}", "extraInfo": extra}})
with open(file, "w") as out:
    out.write(text)
os._exit(7)
"""
    run = run_job(job(start_method, 2, attempts - 1), scripts=ranks(script), timeout=40).check(1)
    error = run.results()[1]["error"]
    assert error["type"] == "ExitCode"
    assert error["message"] == f"rank 1 ended with exit code 7: ValueError: attempt {attempts}"
    assert error["traceback"] == "Traceback: far away"
    assert "Traceback: far away" in run.stderr
    assert (run.run_dir / "logs/worker-1.error.json").exists()


def test_error_files_that_say_nothing(run_job: RunCommand, start_method: str) -> None:
    script = """
file = os.environ["TORCHELASTIC_ERROR_FILE"]
kind = mprun.rank()
if kind == 4:
    os.mkfifo(file)
elif kind == 5:
    os.mkdir(file)
else:
    with open(file, "w") as out:
        out.write(["{", "[]", '{"message": {"text": 1}}', json.dumps({"message": "x" * (2 << 20)})][kind])
mark("written")
wait_for("written", 6)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os._exit(7)
"""
    spec = job(start_method, 6, 0)
    run = run_job(spec, scripts=ranks(script), timeout=40).check(1)
    failed = [result for result in run.results() if result["status"] == "failed"]
    assert failed
    for result in failed:
        assert result["error"]["message"] == f"rank {result['task']} ended with exit code 7"
    script = """
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as out:
    out.write('{"message": "of the file"}')
raise RuntimeError("of its own")
"""
    run = run_job(job(start_method, 1, 0), scripts=ranks(script)).check(1)
    assert run.results()[0]["error"]["message"] == "of its own"


def test_programs_start_again(run_job: RunCommand, tmp_path: Path) -> None:
    """Executables as ranks; what they leave behind meets no later attempt."""
    program = tmp_path / "program"
    program.write_text(
        """#!/bin/sh
echo "$RANK $MASTER_PORT $TORCHELASTIC_RESTART_COUNT"
if [ "$TORCHELASTIC_RESTART_COUNT" = 1 ]; then  # it was killed, and may not be reaped yet
  for i in $(seq 500); do kill -0 "$(cat left)" 2>/dev/null || break; sleep 0.01; done
  kill -0 "$(cat left)" 2>/dev/null && echo alive
fi
if [ "$RANK$TORCHELASTIC_RESTART_COUNT" = 10 ]; then
  until [ -e begun ]; do sleep 0.01; done
  sleep 600 &
  echo $! >left
  echo '{"message": "broken"}' >"$TORCHELASTIC_ERROR_FILE"
  exit 3
fi
touch begun
[ "$TORCHELASTIC_RESTART_COUNT" = 1 ] || sleep 600
"""
    )
    program.chmod(0o755)
    spec = {"script": "program", "processes": 2, "retries": {"on_error": 1}}
    run = run_job(spec, timeout=40).check()
    lines = [run.log(rank).split("\n")[:-1] for rank in (0, 1)]
    assert [[line.split()[2] for line in log] for log in lines] == [["0", "1"], ["0", "1"]]
    assert lines[0][0].split()[1] != lines[0][1].split()[1] == lines[1][1].split()[1]
    assert "rank 1 failed (ExitCode: the command ended with exit code 3: broken): all 2 ranks" in run.stderr
