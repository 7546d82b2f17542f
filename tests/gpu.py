"""Whether this machine has a GPU that torch can use, for the tests that need one. Other machines skip them."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

import pytest

import harness


@functools.cache
def is_usable() -> bool:
    """torch is imported only where there is an NVIDIA device."""
    code = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    return (
        Path("/dev/nvidia0").exists()
        and subprocess.run([harness.MPRUN_PYTHON, "-c", code], check=False).returncode == 0
    )


# Two ranks on one GPU: NCCL refuses that on one host, so each of them pretends to have its own.
MANY_RANKS_ON_ONE = """
import os

os.environ.update(NCCL_HOSTID="host-" + os.environ["RANK"], NCCL_IB_DISABLE="1", NCCL_SOCKET_IFNAME="lo")
"""

is_needed = pytest.mark.skipif(not is_usable(), reason="there is no GPU that torch can use")
