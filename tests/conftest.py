"""Fixtures for the tests that run the real mprun; harness.py does the work."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import MountDisk, RunCommand, StartCommand


NIGHTLY = harness.ROOT / "tests/nightly.txt"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --nightly."""
    parser.addoption("--nightly", action="store_true", help=f"runs what {NIGHTLY.name} names, too")


def pytest_configure(config: pytest.Config) -> None:
    """Ensures that no process can leave our tree."""
    harness.become_subreaper()


def is_nightly(item: pytest.Function, named: frozenset[str]) -> bool:
    """True if nightly.txt names the test, with its parameters or without."""
    file = item.path.relative_to(item.config.rootpath).as_posix()
    return f"{file}::{item.name}" in named or f"{file}::{item.originalname}" in named


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Function]) -> None:
    """Leaves out nightly tests, and puts groups first: each runs on one worker, which must not be the last to end."""
    if not config.getoption("nightly"):
        named = frozenset(line.split("  ")[0] for line in NIGHTLY.read_text(encoding="utf-8").splitlines())
        left_out = [item for item in items if is_nightly(item, named)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


@pytest.fixture(scope="session")
def mprun() -> Path:
    """The binary under test: MPRUN_BIN, or that of the dev preset."""
    if not harness.MPRUN_BIN.is_file():
        pytest.fail(f"{harness.MPRUN_BIN} is not there: build it, or set MPRUN_BIN", pytrace=False)
    return harness.MPRUN_BIN


@pytest.fixture(params=harness.START_METHODS)
def start_method(request: pytest.FixtureRequest) -> str:
    """Runs the test once for each start method."""
    return request.param


@pytest.fixture
def bystanders() -> frozenset[int]:
    """Children of the tests that outlive a test on purpose; a module with such children overrides this."""
    return frozenset()


@pytest.fixture(autouse=True)
def nothing_left(bystanders: frozenset[int]) -> Iterator[None]:
    """Fails the test if it left a process, a file descriptor or shared memory."""
    fds, shared = harness.open_fds(), harness.shared_memory()
    yield
    complaints = []
    # Two seconds: time for processes that were killed together with their mprun to disappear.
    try:
        harness.wait_until(lambda: not harness.living_descendants(bystanders), timeout=2)
    except AssertionError:
        left = harness.living_descendants(bystanders)
        complaints += [f"process left: {process}" for process in left]
        harness.kill_all(left)
        harness.wait_until(
            lambda: not harness.living_descendants(bystanders), what="killed processes to end"
        )
    harness.reap_zombies()
    new_fds = harness.open_fds().items() - fds.items()
    complaints += [f"file descriptor left: {fd} -> {target}" for fd, target in sorted(new_fds)]
    new_shared = harness.shared_memory() - shared
    try:  # a concurrent test may be about to map it, or torch's helper, which waits two seconds, to remove it
        # It reads the maps of every process, so not every few milliseconds.
        harness.wait_until(lambda: not harness.unused_shared_memory(new_shared), timeout=15, pause=0.25)
    except AssertionError:
        complaints += [
            f"shared memory left: {name}"
            for name in sorted(harness.unused_shared_memory(new_shared))
        ]
    if complaints:
        pytest.fail("\n".join(complaints), pytrace=False)


@pytest.fixture
def runner(mprun: Path, tmp_path: Path) -> Iterator[harness.Runner]:
    """Starts mprun in the test's folder, ends it with the test, and checks that it ended cleanly."""
    runner = harness.Runner(mprun, tmp_path)
    yield runner
    runner.finish()
    survivors = [
        line for running in runner.started if running.run for line in running.run.survivors
    ]
    if survivors:
        pytest.fail("alive after mprun had ended:\n" + "\n".join(survivors), pytrace=False)


@pytest.fixture
def start_mprun(runner: harness.Runner) -> StartCommand:
    """start_mprun(*arguments, output=True, stdin=None, env=None, cwd=None) -> Running."""
    return runner.start


@pytest.fixture
def start_plain(runner: harness.Runner) -> StartCommand:
    """start_plain(*argv, env=None, cwd=None) -> Running: the program without mprun."""
    return runner.start_plain


@pytest.fixture
def start_job(runner: harness.Runner) -> StartCommand:
    """start_job(spec, *options, scripts=None, ...) -> Running; the rest as start_mprun."""
    return runner.start_job


@pytest.fixture
def run_mprun(runner: harness.Runner) -> RunCommand:
    """run_mprun(*arguments, timeout=60, ...) -> Run; as start_mprun, but with no --output."""

    def run(
        *arguments: str | Path, timeout: float = 60, output: bool = False, **start: Any
    ) -> harness.Run:
        return runner.start(*arguments, output=output, **start).wait(timeout)

    return run


@pytest.fixture
def run_job(runner: harness.Runner) -> RunCommand:
    """run_job(spec, *options, scripts=None, timeout=60, ...) -> Run; the rest as start_mprun."""

    def run(spec: Any, *options: str | Path, timeout: float = 60, **start: Any) -> harness.Run:
        return runner.start_job(spec, *options, **start).wait(timeout)

    return run


@pytest.fixture
def mount_disk(tmp_path: Path) -> Iterator[MountDisk]:
    """mount_disk("256k") -> Path: a file system of that size; skips where none can be mounted."""
    mounts: list[Path] = []

    def mount(size: str) -> Path:
        folder = tmp_path / f"disk-{len(mounts)}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            pytest.skip(f"cannot mount a small disk: {mounted.stderr.strip()}")
        mounts.append(folder)
        return folder

    yield mount
    for folder in mounts:
        subprocess.run(["umount", "-l", str(folder)], check=True)
