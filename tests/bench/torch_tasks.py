"""The tasks of tests/bench/start.py: a script that imports torch at its head."""

from __future__ import annotations

import time
from typing import Any

import meeting
import timed_torch


def first(_number: int) -> dict[str, Any]:
    """Returns at once: when it ran, and the times of this process's import."""
    return {"ran": time.time(), "imports": [timed_torch.span]}


def meet(_number: int) -> dict[str, Any]:
    """The same, but it returns, and counts as run, when all workers run it at the same time."""
    meeting.wait_for_all()
    return {"ran": time.time(), "imports": [timed_torch.span]}
