"""The tasks of tests/bench/small.py and of its peers."""

from __future__ import annotations

import meeting
from square import square

__all__ = ["meet", "square"]


def meet(number: int) -> int:
    """Returns when all workers run it at the same time."""
    meeting.wait_for_all()
    return number
