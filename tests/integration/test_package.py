"""What cpack makes: a tar archive that runs where it is unpacked, and a Debian package."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import harness
import pytest

pytestmark = pytest.mark.xdist_group("package")  # its setup is done once

SCRIPT = "def run(number):\n    return number * number\n"


def call(*words: str | Path, **more: object) -> str:
    run = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300, **more)  # type: ignore[call-overload]
    assert run.returncode == 0, (words, run.stdout, run.stderr)
    return str(run.stdout)


@pytest.fixture(scope="module")
def packages(mprun: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    call("cpack", "--config", mprun.parent.parent / "CPackConfig.cmake", "-B", folder, cwd=folder)
    return folder


def test_the_archive_runs_where_it_is(packages: Path, tmp_path: Path) -> None:
    archive = next(packages.glob("mprun-*.tar.gz"))
    call("tar", "-xzf", archive, "-C", tmp_path)
    (tmp_path / "job.py").write_text(SCRIPT, encoding="utf-8")
    program = next(tmp_path.glob("mprun-*/bin/mprun"))
    out = call(program, "-q", "-n", "2", "--results", "-", "--set", "inputs.range=3", "job.py:run", cwd=tmp_path)
    assert re.findall(r'"value":(\d+)', out) == ["0", "1", "4"]


@pytest.mark.parametrize("options", [[], ["-p", "mprun.pytest_plugin"]])
def test_pytest_finds_the_plug_in_of_the_debian_package(packages: Path, tmp_path: Path, options: list[str]) -> None:
    """As in the other way to name it, which is one of earlier versions."""
    call("dpkg-deb", "--extract", next(packages.glob("mprun_*.deb")), tmp_path)
    (tmp_path / "test_it.py").write_text("import mprun\ndef test_it(): print(mprun.map(abs, [-1], processes=1))\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "usr/lib/python3/dist-packages")}
    words = [harness.MPRUN_PYTHON, "-m", "pytest", "-s", "-p", "no:cacheprovider", *options, "--mprun", "test_it.py"]
    out = call(*words, cwd=tmp_path, env=environment)
    assert "[1]" in out and "1 passed" in out


def test_the_debian_package(packages: Path) -> None:
    package = next(packages.glob("mprun_*.deb"))
    fields = dict(
        line.split(": ", 1) for line in call("dpkg-deb", "--field", package).splitlines() if ": " in line
    )
    assert fields["Package"] == "mprun"
    assert re.match(r"\d+\.\d+\.\d+$", fields["Version"])
    assert re.search(r"python3 \(>= 3\.11\)", fields["Depends"]) and "libdw1" in fields["Depends"]
    files = {line.split()[-1] for line in call("dpkg-deb", "--contents", package).splitlines()}
    for path in (
        "bin/mprun",
        "lib/mprun/libmprun_preload.so",
        "lib/mprun/python/bootstrap.py",
        "lib/python3/dist-packages/mprun-{}.dist-info/entry_points.txt".format(fields["Version"]),
        "share/man/man1/mprun.1",
        "share/doc/mprun/copyright",
        "share/mprun/job.schema.json",
        "share/mprun/summary.schema.json",
        "share/mprun/examples/digits/job.json",
        "share/bash-completion/completions/mprun",
        "share/zsh/vendor-completions/_mprun",
        "share/fish/vendor_completions.d/mprun.fish",
    ):
        assert f"./usr/{path}" in files, path
    links = [line for line in call("dpkg-deb", "--contents", package).splitlines() if " -> " in line]
    assert [line.split(None, 5)[-1] for line in links] == [
        "./usr/lib/python3/dist-packages/mprun -> ../../mprun/python/mprun"
    ]
    assert not [path for path in files if "__pycache__" in path and "/lib/mprun/" not in path or "/tests/" in path]
