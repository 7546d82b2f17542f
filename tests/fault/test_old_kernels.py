"""System calls that the kernel, or a filter in a container, does not know."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import failing
from harness import RunCommand


@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EINVAL, errno.EPERM], ids=errno.errorcode.get)
def test_no_descriptor_leaks_without_close_range(run_job: RunCommand, tmp_path: Path, error: int) -> None:
    """Linux has it since 5.9 and its flags since 5.11 (EINVAL); filters return any error."""
    library = failing.build_library(tmp_path)
    env = failing.environment(library, f"close_range:{error}:1:forever")
    read_end, write_end = os.pipe()
    try:
        spec = {"command": ["sh", "-c", "readlink /proc/$$/fd/*; true"], "inputs": {"range": 2}}
        run = run_job(spec, env=env, pass_fds=(write_end,)).check()
        leaked = os.readlink(f"/proc/self/fd/{write_end}")
    finally:
        os.close(read_end)
        os.close(write_end)
    for value in run.values():
        assert "/dev/null\n" in value["stdout"]
        assert leaked not in value["stdout"], value
