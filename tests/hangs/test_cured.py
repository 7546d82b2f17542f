"""The cases that an adapter cures: they hang without mprun, end under mprun, hang with the adapter off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import harness
from blocked import wait_until_blocked
from compiled import CASES, build, copy_libgomp, why_not_importable
from harness import RunCommand, Running, StartCommand

MARKER = "second region\n"  # each program prints this right before the step that hangs


def python_case(name: str) -> Callable[[Path], list[str]]:
    """Skips the test if the program needs what is not installed."""

    def argv(_folder: Path) -> list[str]:
        if missing := why_not_importable(CASES / name):
            pytest.skip(missing)
        return [harness.MPRUN_PYTHON, str(CASES / name)]

    return argv


def fork_openmp(folder: Path) -> list[str]:
    return [str(build("fork_openmp.c", folder))]


def two_libgomps(folder: Path) -> list[str]:
    return [str(build("two_libgomps.c", folder)), str(copy_libgomp(folder))]


PROGRAMS = {
    "pool": python_case("pool_openmp.py"),
    "fork": fork_openmp,
    "forkserver": python_case("forkserver_openmp.py"),
    "two-libgomps": two_libgomps,
}


@pytest.fixture(params=PROGRAMS)
def argv(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The command of each case."""
    return PROGRAMS[request.param](tmp_path)


def expect_hang(running: Running) -> None:
    """The program reaches its marker and gets no further."""
    harness.wait_until(
        lambda: MARKER in running.stdout or running.process.poll() is not None,
        timeout=120,
        what="the program to come to its second region",
    )
    wait_until_blocked(running)
    assert MARKER in running.stdout
    assert "done" not in running.stdout


def test_hangs_without_mprun(start_plain: StartCommand, argv: list[str]) -> None:
    """Otherwise the test below would prove nothing."""
    running = start_plain(*argv)
    expect_hang(running)
    running.stop()


def test_ends_under_mprun(run_mprun: RunCommand, argv: list[str]) -> None:
    """mprun prints nothing."""
    run = run_mprun("--", *argv, timeout=120).check()
    assert MARKER in run.stdout
    assert run.stdout.endswith("done\n")
    assert "mprun" not in run.stderr


def test_hangs_with_the_adapter_off(start_mprun: StartCommand, argv: list[str]) -> None:
    """This shows that this adapter is the cure."""
    running = start_mprun("--", *argv, output=False, env={"MPRUN_ADAPTERS": "-libgomp"})
    expect_hang(running)
    running.stop()


def test_forks_beside_regions(run_mprun: RunCommand, tmp_path: Path) -> None:
    """200 forks of a warm thread while another runs regions all the time: all of them right.

    The other thread is never quiet: the waits for it and for its team are made short.
    """
    program = build("forks_beside_regions.c", tmp_path)
    run = run_mprun("--", program, timeout=300, env={"MPRUN_QUIET_SECONDS": "0.1"}).check()
    assert run.stdout == "200 of 200 forks right, 0 regions wrong\n"
    assert run.stderr.count("mprun: warning: ") <= 4
    assert "was still running after 0.1 s" in run.stderr


def test_what_moves_is_not_blocked(start_plain: StartCommand) -> None:
    """A program whose only thread always waits for a moment: every look finds it asleep."""
    running = start_plain("sh", "-c", "while :; do sleep 0.5; done")
    with pytest.raises(AssertionError, match="not blocked for good"):
        wait_until_blocked(running, timeout=6)
    running.stop()
