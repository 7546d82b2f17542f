"""tests/machines/run and the copy of the working tree that it makes."""

from __future__ import annotations

import importlib
import os
import shlex
import subprocess
from pathlib import Path

import pytest

import harness
import working_tree

SCRIPT = harness.ROOT / "tests/machines/run"


def run_script(*arguments: str, path: str = os.environ["PATH"], cache: Path = Path("/nonexistent")) -> harness.Run:
    argv = [harness.MPRUN_PYTHON, str(SCRIPT), *arguments]
    environment = {"PATH": path, "HOME": str(cache), "XDG_CACHE_HOME": str(cache)}
    run = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return harness.Run(run.returncode, run.stdout, run.stderr, cache, [])


def test_help_names_the_machines() -> None:
    run = run_script("--help").check()
    assert run.stdout.startswith("usage: tests/machines/run")
    assert "debian12, debian13, sid, arm64" in run.stdout


@pytest.mark.parametrize("words", [["no-such-machine"], ["sid", "--"], ["sid", "dev", "--", "true"], []])
def test_wrong_words(words: list[str]) -> None:
    run = run_script(*words)
    assert run.returncode == 2
    assert "usage: tests/machines/run" in run.stderr


@pytest.mark.parametrize("machine", ["sid", "arm64", "kernel-6.12"])
def test_what_is_missing_is_named(machine: str) -> None:
    run = run_script(machine, path="/nonexistent")
    assert run.returncode == 77
    assert f"{machine} cannot be had here: it needs mmdebstrap: apt-get install mmdebstrap\n" in run.stderr
    assert ("it needs root" in run.stderr) == (os.geteuid() != 0)
    emulator = "it needs qemu-system-aarch64: apt-get install qemu-system-arm\n"
    assert (emulator in run.stderr) == (machine == "arm64")


def test_all_go_on_without_those_that_are_missing() -> None:
    run = run_script("all", path="/nonexistent").check()
    assert run.stdout.splitlines()[:2] == ["debian12: not here", "debian13: not here"]
    assert run.stderr.count("needs mmdebstrap") == len(run.stdout.splitlines()) == 8


@pytest.mark.parametrize(
    "printed, code, out",
    [
        (["firmware", "machine: begin", "hello", "machine: stage a stage", "machine: exit code 3", "off"], 3, "hello\n"),
        (["firmware", "machine: begin", "hello"], 1, "hello\n"),
        (["no init found"], 1, ""),
    ],
)
def test_an_emulated_machine_prints_what_its_command_does(
    printed: list[str],
    code: int,
    out: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    emulated = importlib.import_module("emulated")
    monkeypatch.setattr(emulated.places, "CACHE", tmp_path / "mprun/machines")
    kernel = tmp_path / "mprun/machines/emulated-none/kernel-none"
    kernel.mkdir(parents=True)
    (kernel / "vmlinuz-1").touch()
    emulator = ("sh", "-c", "printf '%s\\r\\n' " + shlex.join(printed))
    machine = emulated.Emulated("made-up", "", emulated.Processor("none", emulator, "tty", {}), "none")
    assert machine.boot(tmp_path / "initrd") == code
    captured = capfd.readouterr()
    assert captured.out == out
    assert ("made-up stopped before the command ended" in captured.err) == (code != 3)
    assert ("no init found" in captured.err) == ("no init found" in printed)
    results = tmp_path / "mprun/machines/made-up.tsv"
    assert (results.read_text() if results.exists() else "") == ("a stage\n" if code == 3 else "")


def test_the_table_has_the_last_run_of_each_stage(tmp_path: Path) -> None:
    root = tmp_path / "mprun/machines/debian13"
    (root / "root/mprun/build").mkdir(parents=True)
    (root / "root/mprun/build/stages.tsv").write_text(
        "2026-01-05T10:00:00Z\tabc\tdev\t1\t2\t3\t60\n"
        "2026-01-05T11:00:00Z\tabc\tdemo\t1\t0\t0\t60\n"
        "2026-01-16T10:00:00Z\tdef\tdev\t7\t0\t3\t60\n"
    )
    for name, target in (("g++", "g++-14"), ("python3", "python3.13")):
        link = root / "usr/bin" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    torch = root / "usr/lib/python3/dist-packages/torch/version.py"
    torch.parent.mkdir(parents=True)
    torch.write_text("__version__ = '2.6.0+debian'\n")
    table = [harness.MPRUN_PYTHON, str(SCRIPT.parent / "table")]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    lines = subprocess.run(table, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    stages = "`demo`: 1 passed (5 January 2026, abc); `dev`: 7 passed, 3 skipped (16 January 2026, def)"
    assert lines[3] == f"| Debian 13 | g++ 14 | 3.13, 2.6 | {stages} |"
    assert lines[2] == "| Debian 12 |  |  | not run |"


@pytest.mark.parametrize("machine", ["debian12", "debian13", "sid"])
def test_a_debian_package_for_it(machine: str) -> None:
    """It is made there, installed, used and removed."""
    if not (harness.ROOT / ".git").exists():
        pytest.skip("this copy of the project is no git repository")
    argv = [harness.MPRUN_PYTHON, str(SCRIPT), machine, "package"]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=3000, check=False)
    if run.returncode == 77:
        pytest.skip(run.stderr.strip())
    assert run.returncode == 0, (run.stdout, run.stderr)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in place of ours."""
    root = tmp_path / "tree"
    (root / "part").mkdir(parents=True)
    (root / ".gitignore").write_text("build/\n")
    (root / "part/kept").write_text("kept")
    (root / "part/gone").write_text("gone")
    subprocess.run(["git", "-c", "init.defaultBranch=main", "init", "-q", root], check=True)
    subprocess.run(["git", "-C", root, "add", "part/gone"], check=True)
    monkeypatch.setattr(working_tree, "ROOT", root)
    return root


def test_a_copy_follows_the_working_tree(tree: Path, tmp_path: Path) -> None:
    """Builds in it stay, and unchanged files keep their times."""
    copy = tmp_path / "copy"
    (copy / "build").mkdir(parents=True)
    (tree / "build").mkdir()
    (tree / "build/ignored").write_text("ignored")
    (copy / "build/object").write_text("object")
    working_tree.update_copy(copy)
    assert (copy / "part/gone").read_text() == "gone"
    assert not (copy / "build/ignored").exists()

    os.utime(copy / "part/kept", (1, 1))
    (tree / "part/gone").unlink()
    (tree / "part/new").write_text("new")
    (tree / "part/new").chmod(0o755)
    working_tree.update_copy(copy)
    assert sorted(path.name for path in (copy / "part").iterdir()) == ["kept", "new"]
    assert (copy / "part/kept").stat().st_mtime == 1
    assert os.access(copy / "part/new", os.X_OK)
    assert (copy / "build/object").read_text() == "object"
