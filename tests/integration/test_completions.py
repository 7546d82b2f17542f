"""The completions of bash, zsh and fish, which the build makes from mprun --help-all."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import harness
import pytest
from harness import RunCommand

FOLDER = harness.MPRUN_BIN.resolve().parent.parent / "share" / "completions"

# compopt works only while the shell completes.
ASK = """
compopt() { :; }
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_mprun
printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(tmp_path: Path, *words: str) -> list[str]:
    """What bash would offer in place of the last word."""
    command = ["bash", "--norc", "-c", ASK, "bash", FOLDER / "mprun.bash", harness.MPRUN_BIN, *words]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert run.stderr == ""
    return sorted(run.stdout.split())


def test_bash_completes(tmp_path: Path) -> None:
    (tmp_path / "job.json").touch()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "runs").mkdir()
    assert complete(tmp_path, "re") == ["report", "resume"]
    assert complete(tmp_path, "") == ["check", "doctor", "explain", "help", "init", "inspect", "job.json", "merge", "report", "resume", "runs", "submit", "watch"]
    assert complete(tmp_path, "--start-method", "fork") == ["fork", "forkserver"]
    assert complete(tmp_path, "--summ") == ["--summary-json"]
    assert complete(tmp_path, "-n", "4", "--retries", "") == []
    assert complete(tmp_path, "--hang-report", "no") == ["notes.txt"]
    assert complete(tmp_path, "resume", "") == ["runs"]
    assert complete(tmp_path, "help", "exit") == ["exit-status"]
    assert complete(tmp_path, "explain", "barrier") == ["barrier-short"]
    assert complete(tmp_path, "--output", "") == ["runs"]
    assert "bash" in complete(tmp_path, "--", "bas")
    assert complete(tmp_path, "--", "cat", "no") == ["notes.txt"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_option_is_known(shell: str, run_mprun: RunCommand) -> None:
    text = (FOLDER / f"mprun.{shell}").read_text(encoding="utf-8")
    options = re.findall(r"(?<![\w-])--?[a-z][a-z-]*", run_mprun("--help-all").check().stdout.split("\nOptions:\n")[1])
    options = [option for option in options if option.startswith("--")]
    assert len(options) > 30
    for option in options:
        known = f"-l {option[2:]} " if shell == "fish" else option
        assert known in text, option


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_reads_it(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n", FOLDER / f"mprun.{shell}"], check=True, timeout=60)
