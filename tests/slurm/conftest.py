"""The cluster that a Slurm test gets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import Cluster, why_not


@pytest.fixture
def cluster(request: pytest.FixtureRequest, tmp_path: Path, nothing_left: None) -> Iterator[Cluster]:
    """Two idle nodes, or as many as the parameter says, with two CPUs each; skips where Slurm is not available."""
    if reason := why_not():
        pytest.skip(reason)
    with Cluster(tmp_path / "cluster", getattr(request, "param", 2)) as running:
        yield running
