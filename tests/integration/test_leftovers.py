"""Shared memory that a program does not remove itself: the helper processes of Python and torch do."""

from __future__ import annotations

from pathlib import Path

import pytest

import harness
from harness import RunCommand

LEAK = """
import os, sys, time
from multiprocessing.shared_memory import SharedMemory

memory = SharedMemory(create=True, size=4096, name=f"mprun-test-{os.getpid()}")
if os.fork() == 0:
    time.sleep(1e6)  # the helper waits for this one too
print(memory.name, flush=True)
time.sleep(float(sys.argv[1]))
os._exit(0)
"""


@pytest.mark.parametrize("lasts", [0, 0.5])
def test_shared_memory_is_removed(run_mprun: RunCommand, lasts: float) -> None:
    """Also when the program ends before its helper has even begun."""
    for _ in range(5):
        run = run_mprun("--", harness.MPRUN_PYTHON, "-c", LEAK, str(lasts)).check()
        assert run.stdout.strip() not in harness.shared_memory()
        assert "leaked shared_memory" in run.stderr  # it was the helper that removed it


FORKSERVER = """
import multiprocessing
import os
import time


def hold(lock, sender):
    sender.send("here")
    time.sleep(1e6)


if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    lock = context.Lock()
    receiver, sender = context.Pipe(duplex=False)
    context.Process(target=hold, args=(lock, sender)).start()
    receiver.recv()
    print(lock._semlock.name.strip("/"), flush=True)
    os._exit(0)
"""


def test_semaphores_of_a_forkserver_are_removed(run_mprun: RunCommand, tmp_path: Path) -> None:
    """Its worker looks like the forkserver, holds the tracker's pipe, and ends only when killed."""
    (tmp_path / "holds.py").write_text(FORKSERVER, encoding="utf-8")
    run = run_mprun("--", harness.MPRUN_PYTHON, "holds.py").check()
    assert run.stdout.startswith("mp-"), str(run)
    assert f"sem.{run.stdout.strip()}" not in harness.shared_memory()
    assert "leaked semaphore" in run.stderr


LEAKING_JOB = """
import os
import signal
import threading
from multiprocessing.shared_memory import SharedMemory

import torch
import torch.multiprocessing

from events import mark

torch.multiprocessing.set_sharing_strategy("file_system")
kept = []


def leak(how):
    memory = SharedMemory(create=True, size=4096)
    tensor = torch.ones(1000).share_memory_()
    kept.extend([memory, tensor])
    mark("names", memory.name)
    for name in os.listdir("/dev/shm"):
        if name.startswith(f"torch_{os.getpid()}_"):
            mark("names", name)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exits":
        os._exit(1)
    lock = threading.Lock()
    while how == "hangs":
        lock.acquire()
"""


def test_what_tasks_leak_is_removed(
    run_job: RunCommand, start_method: str, tmp_path: Path
) -> None:
    """However their workers end, and at the end of the job."""
    ways = ["killed", "exits", "hangs", "returns"]
    run = run_job(
        {
            "script": "job.py:leak",
            "start_method": start_method,
            "processes": 2,
            "chunk_size": 1,
            "retries": 0,
            "inputs": {"items": ways},
        },
        scripts={"job.py": LEAKING_JOB, "events.py": harness.EVENTS},
    ).check(1)
    assert [result["status"] for result in run.results()] == ["failed"] * 3 + ["ok"]
    names = harness.marks(tmp_path / "names")
    assert len(names) == 2 * len(ways)
    assert [name for name in names if Path("/dev/shm", name).exists()] == []
