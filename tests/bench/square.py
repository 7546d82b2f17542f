"""The trivial task of tests/bench/tasks.py."""

from __future__ import annotations


def square(number: int) -> int:
    """As little work as a task can have."""
    return number * number
