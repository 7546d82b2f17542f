"""mprun finds every case of the corpus, names it, and ends it whole."""

from __future__ import annotations

from pathlib import Path

import pytest

import corpus
import found
from corpus import Case
from harness import Runner


@pytest.mark.parametrize("case", corpus.ALL, ids=lambda case: case.name)
def test_is_found(runner: Runner, tmp_path: Path, case: Case) -> None:
    """With verdict, cause, join and line; nothing of the tree is left."""
    told = found.finish(case, *found.start(runner, case, tmp_path))
    wrong = list(found.complaints(told))
    assert not wrong, f"{wrong}\n{told.run}\n{told.report}"
