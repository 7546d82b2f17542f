"""Runs controls side by side, plain or under mprun, and says what is wrong with their ends."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import harness
from controls import Control
from harness import Running
from outside import Outside

PATIENCE = 180  # seconds for all of them, on a slow machine
A_REPORT = r"mprun: (?:hang proved|stalled|overdue)"
WAS_REPORTED = "was reported"


@dataclass(frozen=True)
class End:
    """How a control has ended."""

    code: int | None  # None: it did not end
    stdout: str  # without numbers, which differ from run to run
    stderr: str


@dataclass
class Started:
    """A control that runs."""

    other: Outside
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

    def end(self) -> End:
        stdout = re.sub(r"\d+", "N", self.running.stdout)
        return End(self.running.process.poll(), stdout, self.running.stderr)


def run_plain(folder: Path, chosen: list[Control]) -> dict[str, End]:
    """Without mprun: the end of each control, by its name."""
    return run_all(folder, chosen, lambda control: [])


def run_watched(folder: Path, chosen: list[Control], patience: float = PATIENCE) -> dict[str, End]:
    """Under mprun, with the lowest stall limit that suits each of them."""

    def prefix(control: Control) -> list[str]:
        return [harness.MPRUN_BIN, "--on-hang", "report", "--stall-seconds", str(control.stall_seconds), "--"]

    return run_all(folder, chosen, prefix, patience)


def complaints(end: End) -> Iterator[str]:
    """What is wrong with the end of a control under mprun."""
    if end.code is None:
        yield "did not end"
    elif end.code != 0:
        yield f"ended with {end.code}"
    if not end.stdout.endswith("done\n"):
        yield "did not print done"
    if re.search(A_REPORT, end.stderr):
        yield WAS_REPORTED
    elif "mprun" in end.stderr:
        yield "was warned of"


def look_at(started: Iterable[Started]) -> bool:
    """Looks at each; True once all have ended."""
    return all([one.look() for one in started])


def run_all(
    folder: Path, chosen: list[Control], prefix: Callable[[Control], Sequence[str]], patience: float = PATIENCE
) -> dict[str, End]:
    """Runs the chosen controls side by side, each with its prefix."""
    runner = harness.Runner(harness.MPRUN_BIN, folder)
    others: dict[str, Outside] = {}
    started: dict[str, Started] = {}
    try:
        argvs = {}
        for control in chosen:  # all are built before the first starts: it may be waiting for us soon
            own = folder / control.name
            own.mkdir()
            others[control.name] = control.other(own)
            argvs[control.name] = [*prefix(control), *control.argv(own, others[control.name].argument)]
        for control in chosen:
            environment = harness.library_settings(folder / control.name)
            running = runner.start_plain(*argvs[control.name], env=environment)
            started[control.name] = Started(others[control.name], running, control.quiet)
            look_at(started.values())
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if look_at(started.values()):
                break
            time.sleep(0.05)
        return {name: one.end() for name, one in started.items()}
    finally:
        runner.finish()
        for other in others.values():
            other.close()
        # Orphans that end on their own, such as a forkserver, need a moment.
        try:
            harness.wait_until(lambda: not harness.living_descendants())
        except AssertionError:
            harness.kill_all(harness.living_descendants())
        harness.reap_zombies()
