"""configs/wheel_backend.py: a wheel of what is installed, and the source archive."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

import harness

pytestmark = pytest.mark.xdist_group("wheel")  # its setup is done once
BACKEND = harness.ROOT / "configs/wheel_backend.py"


def call(*words: str | Path, **more: object) -> str:
    run = subprocess.run(words, capture_output=True, text=True, check=False, timeout=1800, **more)  # type: ignore[call-overload]
    assert run.returncode == 0, (words, run.stdout, run.stderr)
    return str(run.stdout)


@pytest.fixture(scope="module", name="dist")
def packed(mprun: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of the program under test, and the source archive."""
    folder = tmp_path_factory.mktemp("wheel")
    prefix = folder / "prefix"
    call("cmake", "--install", mprun.parent.parent, "--prefix", prefix)
    (folder / "dist").mkdir()
    call(harness.MPRUN_PYTHON, BACKEND, prefix, "linux_x86_64", folder / "dist")
    return folder / "dist"


@pytest.fixture(scope="module", name="venv")
def installed(dist: Path) -> Path:
    """A new virtual environment into which pip has installed the wheel."""
    venv = dist.parent / "venv"
    call(harness.MPRUN_PYTHON, "-m", "venv", venv)
    wheel = next(dist.glob("mprun-*-py3-none-linux_x86_64.whl"))
    call(venv / "bin/pip", "install", "--no-index", "--disable-pip-version-check", wheel)
    return venv


def test_the_program_and_the_package_are_installed(venv: Path, tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("import mprun\n\ndef run(x):\n    return [mprun.__file__, 2 * x]\n")
    python = venv / "bin/python"
    imported = call(python, "-c", "import mprun; print(mprun.__file__)").strip()
    assert Path(imported).is_relative_to(venv) and "site-packages" in imported
    options = ["--python", python, "-q", "-n", "2", "--results", "-"]
    lines = call(venv / "bin/mprun", *options, "work.py:run", "1", "2", cwd=tmp_path).splitlines()
    values = [json.loads(line)["value"] for line in lines]
    assert [value for _, value in values] == [2, 4]
    assert all(Path(module).is_relative_to(venv) for module, _ in values)


def test_pytest_finds_the_plug_in(venv: Path) -> None:
    """By the name of its module, so that -p may be given as well."""
    find = "from importlib.metadata import entry_points as e; print([(p.name, p.value) for p in e(group='pytest11')])"
    assert call(venv / "bin/python", "-c", find).strip() == "[('mprun.pytest_plugin', 'mprun.pytest_plugin')]"


def test_the_package_says_which_python_it_needs(dist: Path, tmp_path: Path) -> None:
    """Older ones can start jobs of another Python, and so may have it installed; they have no workers."""
    code = (
        "import sys; sys.version_info = (3, 10, 4, 'final', 0); sys.path.insert(0, sys.argv[1])\n"
        "import mprun\ntry:\n    mprun.map(abs, [1])\nexcept mprun.JobError as error:\n    print(error)"
    )
    said = call(harness.MPRUN_PYTHON, "-c", code, next(dist.glob("*.whl")))
    assert "workers need Python 3.11 or later; this is 3.10" in said


def test_the_package_finds_its_program(venv: Path, tmp_path: Path) -> None:
    """That of the virtual environment, though PATH does not lead there."""
    code = "import mprun, mprun.job_pipe\nprint(mprun.job_pipe.program(), mprun.map(abs, [-1], processes=1))"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    said = call(venv / "bin/python", "-c", code, cwd=tmp_path, env={**environment, "PATH": "/usr/bin:/bin"})
    assert said.split(maxsplit=1) == [str(venv / "bin/mprun"), "[1]\n"]


def test_pip_removes_all_of_it(venv: Path) -> None:
    call(venv / "bin/pip", "check", "--disable-pip-version-check")
    call(venv / "bin/pip", "uninstall", "--yes", "mprun")
    assert not [path for path in venv.rglob("*mprun*") if path.is_file()]


def test_the_source_archive_has_what_git_tracks(dist: Path, tmp_path: Path) -> None:
    if not (harness.ROOT / ".git").exists():
        pytest.skip("a copy of the working tree without its history")
    with tarfile.open(next(dist.glob("mprun-*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    listing = call("git", "-c", "safe.directory=*", "ls-files", "-z", cwd=harness.ROOT).split("\0")
    assert names == {"PKG-INFO", *(name for name in listing if name and (harness.ROOT / name).is_file())}


def test_the_source_archive_builds(dist: Path, tmp_path: Path) -> None:
    """With nothing but what is in it: pip makes a wheel, which runs."""
    source = next(dist.glob("mprun-*.tar.gz"))
    venv = tmp_path / "venv"
    call(harness.MPRUN_PYTHON, "-m", "venv", venv)
    environment = {**os.environ, "CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count())}
    call(venv / "bin/pip", "install", "--no-index", "--disable-pip-version-check", source, env=environment)
    assert call(venv / "bin/mprun", "--", "echo", "alive") == "alive\n"
