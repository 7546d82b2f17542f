"""Shared memory that a program does not remove itself: Python's helper process does."""

from __future__ import annotations

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
