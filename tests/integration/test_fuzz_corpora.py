"""The corpora of the fuzz targets: packed the same way each time, and never replayed in part."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

import harness

FUZZ = Path(__file__).resolve().parent.parent / "fuzz"
ARCHIVE = FUZZ / "corpora" / "words.tar"
BLOCK = 512


def corpus(*words: str | Path) -> None:
    subprocess.run([FUZZ / "corpus", *words], check=True)


def replay(archive: Path) -> subprocess.CompletedProcess[str]:
    program = harness.MPRUN_BIN.with_name("fuzz_replay")
    return subprocess.run([program, "words", archive], capture_output=True, text=True, check=False)


def contents(archive: Path) -> tuple[int, list[tuple]]:
    """All that an archive says: its size, and what is in it. GNU tar 1.35 leaves the device numbers empty, 1.34 not."""
    with tarfile.open(archive) as members:
        files = [
            (each.name, each.mode, each.mtime, each.uid, each.gid, members.extractfile(each).read()) for each in members
        ]
    return archive.stat().st_size, files


@pytest.mark.parametrize("archive", sorted((FUZZ / "corpora").iterdir()), ids=lambda path: path.stem)
def test_unpacked_and_packed_again_an_archive_is_the_same(archive: Path, tmp_path: Path) -> None:
    corpus("unpack", archive, tmp_path / "inputs")
    for name in ("again.tar", "once-more.tar"):
        corpus("pack", tmp_path / "inputs", tmp_path / name)
    assert contents(tmp_path / "again.tar") == contents(archive)
    assert (tmp_path / "once-more.tar").read_bytes() == (tmp_path / "again.tar").read_bytes()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda whole: b"", "the archive is truncated"),
        (lambda whole: whole[:-BLOCK], "not the header of a regular file"),  # half of the end
        (lambda whole: whole[: -2 * BLOCK], "the archive is truncated"),  # between two files
        (lambda whole: whole[: -3 * BLOCK], "the file is truncated"),
        (lambda whole: whole[:-1], "not the header of a regular file"),
        (lambda whole: whole + bytes(BLOCK), "not the header of a regular file"),
        (lambda whole: b"x" + whole[1:], "byte 0: not the header of a regular file"),
        (lambda whole: whole[: 2 * BLOCK - 1] + b"x" + whole[2 * BLOCK :], "longer than its header says"),
        (lambda whole: bytes(2 * BLOCK), "no inputs"),
    ],
)
def test_a_broken_archive_is_not_replayed(damage, message: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.tar"
    broken.write_bytes(damage(ARCHIVE.read_bytes()))
    run = replay(broken)
    assert (run.returncode, run.stdout) == (1, "")
    assert message in run.stderr


def test_an_archive_that_is_not_there_fails_the_replay(tmp_path: Path) -> None:
    assert replay(tmp_path / "none.tar").returncode == 1


def test_an_input_is_added_under_its_digest(tmp_path: Path) -> None:
    for name in ("corpus", "corpora"):
        source = FUZZ / name
        subprocess.run(["cp", "-r", source, tmp_path], check=True)
    (tmp_path / "found").write_bytes(b"abc")
    subprocess.run([tmp_path / "corpus", "add", "words", tmp_path / "found"], check=True)
    run = replay(tmp_path / "corpora/words.tar")
    assert run.returncode == 0 and "a9993e364706816aba3e25717850c26c9cd0d89d" in run.stdout.splitlines()
