"""The task of tests/bench/nodes.py."""

from __future__ import annotations

import time


def nap(_number: int) -> None:
    time.sleep(0.01)
