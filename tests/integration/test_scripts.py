"""The scripts around mprun: configs/demo, configs/prepare, tests/run and tests/tally.py."""

from __future__ import annotations

import os
import subprocess
import xml.sax.saxutils
from pathlib import Path

import pytest

import harness
import tally

SCRIPTS = ["configs/demo", "tests/run", "tests/bench/run", "tests/suites/run"]


def run_bash(
    *arguments: str | Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs bash from the root of the repository."""
    return subprocess.run(
        ["bash", *map(str, arguments)],
        cwd=harness.ROOT,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def stubs(tmp_path: Path) -> dict[str, str]:
    """An environment with our own dpkg-query, sudo and id, and an apt-get that logs to LOG."""
    folder = tmp_path / "stubs"
    folder.mkdir()
    programs = {
        "dpkg-query": "printf '%s, %s\\n' 'installed present' '' 'installed other-t64' 'other (= 2), more' 'unpacked gone' ''",
        "apt-get": 'echo "$*" >> "$LOG"; echo "noise of apt-get"; exit "${APT_EXIT:-0}"',
        "sudo": '[ "$MAY_SUDO" = yes ] || exit 1; shift; exec "$@"',
        "id": 'echo "$USER_ID"',
    }
    for name, body in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    return {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "USER_ID": "1000",
        "LOG": str(tmp_path / "apt-get.log"),
    }


def need_packages(names: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Calls the function of configs/prepare."""
    return run_bash(
        "-euo",
        "pipefail",
        "-c",
        f"source configs/prepare; need_packages {names}; echo done",
        env=env,
    )


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_and_wrong_options(script: str) -> None:
    for option in ("-h", "--help"):
        shown = run_bash(script, option)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert shown.stdout.startswith(f"usage: {script}")
    wrong = run_bash(script, "--no-such-option")
    assert wrong.returncode == 2
    assert f"usage: {script}" in wrong.stderr


@pytest.mark.parametrize("script", [*SCRIPTS, ".ci/run"])
def test_scripts_are_executable(script: str) -> None:
    assert os.access(harness.ROOT / script, os.X_OK)


def test_nothing_is_installed_when_nothing_is_missing(stubs: dict[str, str]) -> None:
    done = need_packages("present other", stubs)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert not Path(stubs["LOG"]).exists()


def test_without_root_the_command_is_named(stubs: dict[str, str]) -> None:
    done = need_packages("present absent gone", stubs)
    assert done.returncode == 1
    assert "done" not in done.stdout
    assert "sudo apt-get install --no-install-recommends absent gone\n" in done.stderr
    assert not Path(stubs["LOG"]).exists()


@pytest.mark.parametrize("who", [{"USER_ID": "0"}, {"MAY_SUDO": "yes"}])
def test_root_or_sudo_installs_what_is_missing(stubs: dict[str, str], who: dict[str, str]) -> None:
    done = need_packages("absent present", {**stubs, **who})
    assert (done.returncode, done.stdout, done.stderr) == (0, "Installing absent\ndone\n", "")
    update, install = Path(stubs["LOG"]).read_text().splitlines()
    assert update.endswith(" update")
    assert install.endswith(" install -y --no-install-recommends absent")


def test_a_failed_installation_is_shown(stubs: dict[str, str]) -> None:
    done = need_packages("absent", {**stubs, "USER_ID": "0", "APT_EXIT": "100"})
    assert done.returncode == 100
    assert "noise of apt-get" in done.stderr
    assert "failed with exit code 100: env DEBIAN_FRONTEND=noninteractive apt-get" in done.stderr


ALL_BUT_TORCH = """#!/bin/bash
source configs/prepare
printf 'installed %s, \\n' "${build_packages[@]}" "${demo_packages[@]}" | grep -v torch
"""


def test_the_demo_stops_when_a_package_is_missing(stubs: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "stubs/dpkg-query").write_text(ALL_BUT_TORCH)
    done = run_bash("configs/demo", env=stubs)
    assert done.returncode == 1
    assert "sudo apt-get install --no-install-recommends python3-torch\n" in done.stderr
    assert done.stdout == ""


GTEST = "[==========] 9 tests from 2 test suites ran. (3 ms total)\n[  PASSED  ] 7 tests.\n"
GTEST_FAILED = (
    GTEST
    + "[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.b\n[  FAILED  ] 1 test, listed below:\n"
)


@pytest.mark.parametrize(
    ("status", "output", "counts"),
    [
        ("run", "", (1, 0, 0)),
        ("fail", "Segmentation fault", (0, 1, 0)),
        ("notrun", "Unable to find executable: /x", (0, 1, 0)),
        ("disabled", "Disabled", (0, 0, 1)),
        ("run", GTEST, (7, 0, 0)),
        ("fail", GTEST_FAILED, (7, 1, 1)),
        ("fail", GTEST, (7, 1, 0)),  # it crashed after its last line
    ],
)
def test_tally(tmp_path: Path, status: str, output: str, counts: tuple[int, int, int]) -> None:
    text = xml.sax.saxutils.escape(output)
    (tmp_path / "junit.xml").write_text(
        f'<testsuite><testcase status="{status}"><system-out>{text}</system-out></testcase>'
        '<testcase status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase></testsuite>'
    )
    passed, failed, skipped = counts
    assert tally_of(tmp_path) == f"{passed} {failed} {skipped + 1}\n"


def test_tally_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text(
        '<testsuites><testsuite tests="9" failures="2" errors="1" skipped="2"><testcase/></testsuite></testsuites>'
    )
    assert tally_of(tmp_path) == "4 3 2\n"


def tally_of(folder: Path) -> str:
    argv = [harness.MPRUN_PYTHON, tally.__file__, folder / "junit.xml"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
