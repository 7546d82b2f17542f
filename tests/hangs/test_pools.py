"""Every way in which a Python program makes children by fork: they work under mprun, with no change to it."""

from __future__ import annotations

from pathlib import Path

import pytest

import harness
from harness import RunCommand

POOLS = Path(__file__).resolve().parent / "pools"


@pytest.mark.parametrize(
    "program",
    [
        "executor_pool",
        "joblib_loky",
        "joblib_multiprocessing",
        "torch_pool",
        "torch_dataloader",
        "os_fork",
        "ctypes_fork CDLL",
        "ctypes_fork PyDLL",
    ],
)
def test_children_work(run_mprun: RunCommand, program: str) -> None:
    """They can use Python's threads, import and OpenMP; so can their parent afterwards."""
    name, *arguments = program.split()
    # Busy threads are never quiet: the wait for them need not be long.
    run = run_mprun(
        "--",
        harness.MPRUN_PYTHON,
        POOLS / f"{name}.py",
        *arguments,
        timeout=180,
        env={"MPRUN_QUIET_SECONDS": "0.2"},
    ).check()
    assert run.stdout == "right\n"
