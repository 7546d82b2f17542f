"""The word of a shared lock shows that a thread sleeps, so that the one that releases the lock wakes the next.

mprun also wakes forgotten sleepers, a few times a second: without the mark nothing would fail, but be slow.
"""

from __future__ import annotations

from harness import RunCommand

SCRIPT = """
import mmap
import os
import struct
import time

import mprun

WAITERS = 0x80000000  # FUTEX_WAITERS
MEMORY = mmap.mmap(os.open(os.environ["MPRUN_SYNC"], os.O_RDWR), 0)


def is_marked(name):
    (body,) = struct.unpack_from("=Q", MEMORY, MEMORY.find(name.encode() + b"\\0") - 8)
    return bool(struct.unpack_from("=I", MEMORY, body)[0] & WAITERS)


def start_sleeper(lock):
    pid = os.fork()
    if pid == 0:
        with lock:
            marked = is_marked("a lock")
        os._exit(marked)
    asleep = False
    while not asleep:  # there is no event for it
        time.sleep(0.001)
        with open(f"/proc/{pid}/syscall") as file:
            asleep = file.read().startswith("202 ")
    return pid


def run(_):
    lock = mprun.lock("a lock")
    with lock:
        unmarked = is_marked("a lock")
        sleepers = [start_sleeper(lock) for _ in range(2)]
        marked = is_marked("a lock")
    return [unmarked, marked, [os.waitstatus_to_exitcode(os.wait()[1]) for _ in sleepers]]
"""


def test_the_word_of_a_lock_shows_that_a_thread_sleeps(run_job: RunCommand) -> None:
    """The first of two sleepers gets the lock from an owner that knew of them, and marks the other one in turn."""
    job = {"script": "job.py:run", "inputs": {"range": 1}}
    run = run_job(job, scripts={"job.py": SCRIPT}, timeout=60).check()
    unmarked, marked, marked_by_sleepers = run.values()[0]
    assert (unmarked, marked) == (False, True)
    assert marked_by_sleepers[0] == 1
