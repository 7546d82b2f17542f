"""tests/hangs/table measures the time until a hang is reported."""

from __future__ import annotations

from pathlib import Path

import corpus
from hang_table import Row, run_once

HELPERS_MAY_ACT = 10  # seconds that the other threads of a process have before it is ended


def test_the_first_report_counts(tmp_path: Path, mprun: Path) -> None:
    """Not the second one, which adds the parent once its other thread has had time to act."""
    [case] = [case for case in corpus.ALL if case.name == "lock_held_at_fork_busy"]
    row = Row(case)
    assert run_once(row, tmp_path) == []
    assert row.right == 1
    assert row.seconds[0] < HELPERS_MAY_ACT
