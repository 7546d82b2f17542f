"""The controls end, plain and watched, and mprun reports nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import controls
import side_by_side
from controls import CONTROLS, Control
from side_by_side import End

pytestmark = pytest.mark.xdist_group("controls")  # its setup is done once


def selected(request: pytest.FixtureRequest) -> list[Control]:
    """Those of which this run has a test."""
    here = [item for item in request.session.items if item.module is request.module and hasattr(item, "callspec")]
    names = {item.callspec.params["control"].name for item in here}
    return [control for control in controls.HERE if control.name in names]


@pytest.fixture(scope="module")
def plain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, End]:
    """How each of them ends without mprun."""
    return side_by_side.run_plain(tmp_path_factory.mktemp("plain"), selected(request))


@pytest.fixture(scope="module")
def watched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, mprun: Path) -> dict[str, End]:
    """How each of them ends under mprun."""
    return side_by_side.run_watched(tmp_path_factory.mktemp("watched"), selected(request))


@controls.each_control
def test_ends_plain(plain: dict[str, End], control: Control) -> None:
    """Otherwise there would be nothing to mistake for a hang."""
    end = plain[control.name]
    assert end.code == 0, end.stderr
    assert end.stdout.endswith("done\n")


@controls.each_control
def test_ends_watched(watched: dict[str, End], control: Control) -> None:
    """With no verdict and no disturbance."""
    end = watched[control.name]
    assert not list(side_by_side.complaints(end)), end.stderr


@controls.each_control
def test_ends_watched_as_plain(plain: dict[str, End], watched: dict[str, End], control: Control) -> None:
    """The output is exactly the same, but for what differs from run to run."""
    assert comparable(watched[control.name]) == comparable(plain[control.name])


def comparable(end: End) -> End:
    """Without times, numbers and the names of semaphores; several processes write to stderr in any order."""
    lines = re.sub(r"'/mp-\w+'|\d+", "#", end.stderr).splitlines()
    return replace(end, stderr="\n".join(sorted(lines)))


def test_every_program_is_in_the_table() -> None:
    """And no two entries have the same name."""
    sources = {path.name for path in CONTROLS.iterdir() if path.is_file()}
    assert sources == {control.program for control in controls.ALL}
    names = [control.name for control in controls.ALL]
    assert len(names) == len(set(names))
