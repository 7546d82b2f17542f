"""Every way in which a Python program forks: the children work, without any change to the program."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

import harness
from harness import RunCommand

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

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
def test_children_work(run_mprun: RunCommand, tmp_path: Path, program: str) -> None:
    """They can use Python's threads, imports and OpenMP; so can their parent afterwards."""
    name, *arguments = program.split()
    environment = {
        **harness.library_settings(tmp_path),
        "MPRUN_QUIET_SECONDS": "0.2",  # busy threads are never quiet: no need to wait long
    }
    run = run_mprun(
        "--",
        harness.MPRUN_PYTHON,
        POOLS / f"{name}.py",
        *arguments,
        timeout=180,
        env=environment,
    ).check()
    assert run.stdout == "right\n"
