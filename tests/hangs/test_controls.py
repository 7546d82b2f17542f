"""The controls end, plain and watched, and mprun reports nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import controls
import harness
from controls import CONTROLS, Control
from harness import Running

pytestmark = pytest.mark.xdist_group("controls")  # its setup is done once

PATIENCE = 180  # seconds for all of them, on a slow machine

Ends = dict[str, tuple[int | None, str, str]]  # exit code, stdout, stderr; no code: did not end


@dataclass
class Started:
    """A control that runs."""

    other: controls.Outside
    running: Running
    quiet: float
    ready_since: float | None = None  # since when it has waited for the process outside
    acted: bool = False

    def look(self) -> bool:
        """Acts when it is time; True once it has ended."""
        if self.running.process.poll() is not None:
            return True
        if self.other.acts and not self.acted:
            if self.ready_since is None and "ready" in self.running.stdout:
                self.ready_since = time.monotonic()
            elif self.ready_since and time.monotonic() - self.ready_since > self.quiet:
                self.other.act(self.running)
                self.acted = True
        return False


def selected(request: pytest.FixtureRequest) -> list[Control]:
    """Those of which this run has a test."""
    here = [item for item in request.session.items if item.module is request.module and hasattr(item, "callspec")]
    names = {item.callspec.params["control"].name for item in here}
    return [control for control in controls.HERE if control.name in names]


def run_all(folder: Path, chosen: list[Control], prefix: Callable[[Control], Sequence[str]]) -> Ends:
    """Runs the chosen controls side by side, each with its prefix."""
    runner = harness.Runner(harness.MPRUN_BIN, folder)
    started = {}
    try:
        for control in chosen:
            own = folder / control.name
            own.mkdir()
            other = control.other(own)
            argv = [*prefix(control), *control.argv(own, other.argument)]
            running = runner.start_plain(*argv, env=harness.library_settings(own))
            started[control.name] = Started(other, running, control.quiet)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if all([one.look() for one in started.values()]):
                break
            time.sleep(0.05)
        return {name: end_of(one.running) for name, one in started.items()}
    finally:
        runner.finish()
        for one in started.values():
            one.other.close()
        # Orphans that end on their own, such as a forkserver, need a moment.
        try:
            harness.wait_until(lambda: not harness.living_descendants())
        except AssertionError:
            harness.kill_all(harness.living_descendants())
        harness.reap_zombies()


def end_of(running: Running) -> tuple[int | None, str, str]:
    """Numbers in the output differ from run to run."""
    stdout = re.sub(r"\d+", "N", running.stdout)
    return running.process.poll(), stdout, running.stderr


@pytest.fixture(scope="module")
def plain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ends:
    """How each of them ends without mprun."""
    return run_all(tmp_path_factory.mktemp("plain"), selected(request), lambda control: [])


@pytest.fixture(scope="module")
def watched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, mprun: Path) -> Ends:
    """How each of them ends under mprun, with the lowest stall limit that suits it."""

    def prefix(control: Control) -> list[str]:
        stall = ["--stall-seconds", str(control.stall_seconds)]
        return [str(mprun), "--on-hang", "report", *stall, "--"]

    return run_all(tmp_path_factory.mktemp("watched"), selected(request), prefix)


@controls.each_control
def test_ends_plain(plain: Ends, control: Control) -> None:
    """Otherwise there would be nothing to mistake for a hang."""
    code, stdout, stderr = plain[control.name]
    assert code == 0, stderr
    assert stdout.endswith("done\n")


@controls.each_control
def test_ends_watched(watched: Ends, control: Control) -> None:
    """With no verdict and no disturbance."""
    code, stdout, stderr = watched[control.name]
    assert code == 0, stderr
    assert stdout.endswith("done\n")
    assert "mprun" not in stderr


@controls.each_control
def test_ends_watched_as_plain(plain: Ends, watched: Ends, control: Control) -> None:
    """The output is exactly the same."""
    assert watched[control.name] == plain[control.name]


def test_every_program_is_in_the_table() -> None:
    """And no two entries have the same name."""
    sources = {path.name for path in CONTROLS.iterdir() if path.is_file()}
    assert sources == {control.program for control in controls.ALL}
    names = [control.name for control in controls.ALL]
    assert len(names) == len(set(names))
