"""The public C interface: the installed header, its CMake package and the example."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import harness
from harness import RunCommand

EXAMPLE = harness.ROOT / "configs/examples/fork_hooks"

USE = """
#include <mprun/fork_hooks.h>

int main(void) {
  struct mprun_fork_hook hook = MPRUN_FORK_HOOK_INIT("nothing");
  const int added = mprun_add_fork_hook(&hook);
  const int removed = mprun_remove_fork_hook("nothing", NULL);
  return added == removed ? added : 1;
}
"""
NOT_UNDER_MPRUN = 38  # ENOSYS


def call(*command: str | Path) -> str:
    """Runs a tool; fails with its output."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module", name="prefix")
def installed(mprun: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation that was moved after it was made: its CMake package may not contain its path."""
    folder = tmp_path_factory.mktemp("installation")
    call("cmake", "--install", mprun.parent.parent, "--prefix", folder / "made here")
    return (folder / "made here").rename(folder / "moved here")


@pytest.fixture(scope="module", name="example")
def built_example(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example as a user builds it."""
    build = tmp_path_factory.mktemp("example")
    call("cmake", "-S", EXAMPLE, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    call("cmake", "--build", build)
    return build / "example"


def test_the_example_forks_under_mprun(run_mprun: RunCommand, example: Path) -> None:
    run = run_mprun("--", example).check()
    assert sorted(run.stdout.splitlines()) == ["before fork: 121", "child: 144", "parent: 169"]
    assert run.stderr == ""


def test_the_example_needs_its_hook(run_mprun: RunCommand, example: Path) -> None:
    run = run_mprun("--", example, env={"MPRUN_ADAPTERS": "-example_pool"}).check(1)
    assert "the child's pool did not answer" in run.stdout
    assert "child: " not in run.stdout


def test_the_example_runs_without_mprun(example: Path) -> None:
    assert "not under mprun" in call(example)


def test_the_package_has_a_version_and_no_path(
    mprun: Path, prefix: Path, tmp_path: Path
) -> None:
    version = call(mprun, "--version").split()[1]
    for wanted, found in ((version, "TRUE"), ("99.0", "FALSE"), ("0.0", "FALSE")):
        (tmp_path / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(look LANGUAGES NONE)\n"
            f"find_package(mprun {wanted} QUIET)\n"
            'if(mprun_FOUND)\n  message(STATUS "found=TRUE")\nelse()\n'
            '  message(STATUS "found=FALSE")\nendif()\n'
        )
        said = call("cmake", "-S", tmp_path, "-B", tmp_path / wanted, f"-DCMAKE_PREFIX_PATH={prefix}")
        assert f"found={found}" in said
    for file in (prefix / "lib/cmake/mprun").iterdir():
        text = file.read_text(encoding="utf-8")
        assert str(harness.ROOT) not in text and str(prefix.parent) not in text, file


@pytest.mark.parametrize("linked", [["-fPIE", "-pie"], ["-fno-pie", "-no-pie"]])
@pytest.mark.parametrize(
    "compiler", [["cc", "-std=c11", "-x", "c"], ["c++", "-std=c++17", "-x", "c++"]]
)
def test_the_header_in_strict_c_and_cxx(
    run_mprun: RunCommand, prefix: Path, tmp_path: Path, compiler: list[str], linked: list[str]
) -> None:
    (tmp_path / "use").write_text(USE)
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
    call(*compiler, *warnings, *linked, f"-I{prefix}/include", tmp_path / "use", "-o", tmp_path / "program")
    run_mprun("--", tmp_path / "program").check()
    alone = subprocess.run([tmp_path / "program"], check=False)
    assert alone.returncode == NOT_UNDER_MPRUN


def test_the_header_in_a_static_program(
    run_mprun: RunCommand, prefix: Path, tmp_path: Path
) -> None:
    """Which nothing can be preloaded into."""
    (tmp_path / "use.c").write_text(USE)
    call("cc", "-static", f"-I{prefix}/include", tmp_path / "use.c", "-o", tmp_path / "program")
    run_mprun("--", tmp_path / "program").check(NOT_UNDER_MPRUN)
