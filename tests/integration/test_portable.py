"""configs/portable: what it makes needs glibc 2.28 and nothing else, runs on other releases of Debian, and is the same
whenever it is made."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

import harness

pytestmark = pytest.mark.xdist_group("portable")  # its setup is done once
NOT_HERE = 77
OF_GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}
NEWEST = (2, 28)

# What is done on each machine, in an empty folder with the files of the build. Python is the machine's.
TRY = r"""
set -euo pipefail
source configs/prepare
need_packages python3 python3-venv >/dev/null
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
tar -x
tar -xzf mprun-*-linux-x86_64.tar.gz
mprun=$(echo "$PWD"/mprun-*-linux-x86_64/bin/mprun)

cat >pool.py <<'PYTHON'
import multiprocessing

def square(number):
    return number * number

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print("pool", pool.map(square, range(3)))
PYTHON
"$mprun" -- python3 pool.py

cat >stuck.py <<'PYTHON'
import threading

lock = threading.Lock()
lock.acquire()
print("ready", flush=True)
lock.acquire()
PYTHON
if "$mprun" --on-hang kill -- python3 stuck.py 2>report; then exit 1; fi
grep -o 'hang proved (deadlock)' report
mkfifo ready
python3 stuck.py >ready &
read -r _ <ready
"$mprun" inspect $! | grep -o 'nothing in this tree can ever move again' || true
kill $!

cat >job.py <<'PYTHON'
def double(number):
    return 2 * number
PYTHON
python3 -m venv venv
venv/bin/pip install --quiet --no-index --disable-pip-version-check ./mprun-*.whl
for each in "$mprun" venv/bin/mprun; do
  "$each" -q -n 2 --results - job.py:double 1 2 2>&1 || test $? = 3
done
venv/bin/python -c 'import mprun; print("rank", mprun.rank())' 2>&1 || true
"""


def run(*words: str | Path, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=1800, **more)  # type: ignore[call-overload]


def build(root: Path, dist: Path, **variables: str) -> Path:
    made = run(root / "configs/portable", dist, env={**os.environ, **variables})
    if made.returncode == NOT_HERE:
        pytest.skip(made.stderr.strip())
    assert made.returncode == 0, made.stderr
    return dist


@pytest.fixture(scope="module", name="dist")
def portable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(harness.ROOT, tmp_path_factory.mktemp("portable") / "dist")


@pytest.fixture(scope="module", name="unpacked")
def archive(dist: Path) -> Path:
    with tarfile.open(next(dist.glob("mprun-*-linux-x86_64.tar.gz"))) as packed:
        packed.extractall(dist.parent / "unpacked")
    return next((dist.parent / "unpacked").glob("mprun-*"))


def test_nothing_but_an_old_glibc_is_needed(unpacked: Path) -> None:
    programs = [path for path in unpacked.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    assert {path.name for path in programs} == {"mprun", "libmprun_preload.so", "_mprun.abi3.so"}
    for program in programs:
        facts = run("readelf", "--wide", "--dynamic", "--version-info", program).stdout
        assert set(re.findall(r"\(NEEDED\).*\[(.*)\]", facts)) <= OF_GLIBC, program
        versions = set(re.findall(r"Name: (\S+) +Flags", facts))
        newest = max(tuple(map(int, name.removeprefix("GLIBC_").split("."))) for name in versions)
        assert newest <= NEWEST, (program, versions)


@pytest.mark.parametrize("machine", ["debian11", "debian12", "debian13", "sid"])
def test_it_runs_on(machine: str, dist: Path) -> None:
    """Python 3.9 of Debian 11 is too old for jobs, and mprun says so."""
    files = dist.parent / "files.tar"
    with tarfile.open(files, "w") as packed:
        for path in dist.iterdir():
            packed.add(path, path.name)
    with files.open("rb") as given:
        tried = run(harness.ROOT / "tests/machines/run", machine, "--", "bash", "-c", TRY, stdin=given)
    if tried.returncode == NOT_HERE:
        pytest.skip(tried.stderr.strip())
    assert tried.returncode == 0, (tried.stdout, tried.stderr)
    for wanted in ("pool [0, 1, 4]", "hang proved (deadlock)", "nothing in this tree can ever move again"):
        assert wanted in tried.stdout, (tried.stdout, tried.stderr)
    assert "rank 0" in tried.stdout, "import mprun"
    if machine == "debian11":
        assert tried.stdout.count("this is Python 3.9.2; mprun's workers need Python 3.11 or later") == 2, tried.stdout
    else:
        assert re.findall(r'"value":(\d)', tried.stdout) == ["2", "4", "2", "4"], (tried.stdout, tried.stderr)


def test_it_is_made_again_byte_for_byte(dist: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(harness.ROOT, copy, ignore=shutil.ignore_patterns("build", "runs"), symlinks=True)
    again = build(copy, tmp_path / "dist", CCACHE_DISABLE="1")
    sums = (dist / "SHA256SUMS").read_text(encoding="utf-8")
    assert (again / "SHA256SUMS").read_text(encoding="utf-8") == sums


def test_the_sums_are_those_of_all_files(dist: Path) -> None:
    sums = dict(reversed(line.split()) for line in (dist / "SHA256SUMS").read_text(encoding="utf-8").splitlines())
    files = {path.name: path for path in dist.iterdir() if path.name != "SHA256SUMS"}
    assert sums == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    assert len(files) == 4


def test_the_libraries_inside_are_listed(dist: Path, unpacked: Path) -> None:
    """Each with its version and licence, whose text is in the archive."""
    text = next(dist.glob("*.cdx.json")).read_text(encoding="utf-8")
    assert (unpacked / "share/doc/mprun/sbom.cdx.json").read_text(encoding="utf-8") == text
    bill = json.loads(text)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    components = {part["name"]: part for part in bill["components"]}
    assert {"libdw-dev", "libelf-dev", "zlib1g-dev", "libfmt-dev", "libstdc++-10-dev", "node-d3"} <= set(components)
    licences = {path.name for path in (unpacked / "share/doc/mprun/licences").iterdir()}
    assert licences == set(components) - {"node-d3"}  # whose licence is in `copyright`
    for name, part in components.items():
        assert re.match(r"[\d:]+\.", part["version"]), name
        assert part["licenses"][0]["expression"], name
