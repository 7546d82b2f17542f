"""Shared tensors that cannot be made or kept: wrong specs, full disks, malicious tasks."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import pytest

from harness import MountDisk, RunCommand
from tensor_jobs import saved, shared_job, shared_of

ROWS = """
import os

import mprun


def fill(row):
    weights = mprun.shared["weights"]
    mprun.shared["sums"][row] = weights[row].sum()
    weights[row] += row + 1
    return os.getpid()
"""


HOSTILE = """
import errno
import fcntl
import json
import os

import mprun

ADD_SEALS, SEAL_WRITE = 1033, 8
PUNCH_HOLE = 3


def attempt(action):
    try:
        action()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"


def fill(row):
    rows = mprun.shared["rows"]
    entry = json.loads(os.environ["MPRUN_SHARED"])["rows"]
    fd = os.open(entry["path"], os.O_RDWR)
    results = [
        attempt(lambda: os.ftruncate(fd, 0)),
        attempt(lambda: os.ftruncate(fd, 1 << 30)),
        attempt(lambda: fcntl.fcntl(fd, ADD_SEALS, SEAL_WRITE)),
    ]
    os.close(fd)
    rows[row] = row + 1
    os.makedirs("out/shared", exist_ok=True)
    return results
"""


def test_no_process_can_resize_or_seal_the_memory(run_job: RunCommand) -> None:
    spec = shared_job(shared={"rows": {"shape": [6], "dtype": "i8"}})
    run = run_job(spec, scripts={"job.py": HOSTILE}).check()
    assert run.values() == [["EPERM", "EPERM", "EPERM"]] * 6
    assert saved(run, "rows").tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("what", ["link", "file"])
def test_what_a_task_puts_in_the_place_of_the_folder(run_job: RunCommand, what: str) -> None:
    """mprun is not redirected, and reports it."""
    make = {"link": "os.symlink('..', path)", "file": "open(path, 'w').close()"}[what]
    script = f"""
import os


def fill(row):
    path = os.environ["MPRUN_RUN_DIR"] + "/shared"
    {make}
"""
    spec = shared_job(inputs={"range": 1}, shared={"rows": {"shape": [6], "dtype": "i8"}})
    run = run_job(spec, scripts={"job.py": script}).check(125)
    assert "cannot write" in run.stderr and "out/shared" in run.stderr
    assert run.results()[0]["status"] == "ok"
    assert run.summary()["shared"] == []
    assert not list(run.run_dir.rglob("rows.npy"))


def npy_text(descr: str, shape: str, data: int = 0, order: str = "False") -> bytes:
    """A .npy file with that header."""
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text + bytes(data)


REFUSED: dict[str, tuple[Any, str, str]] = {
    "no source": ({}, "/shared/w", "exactly one of npy, safetensors, shape"),
    "two sources": ({"npy": "a.npy", "shape": [1]}, "/shared/w/shape", "exactly one of them"),
    "tensor alone": ({"npy": "a.npy", "tensor": "x"}, "/shared/w/tensor", 'fits "safetensors"'),
    "dtype alone": ({"npy": "a.npy", "dtype": "f4"}, "/shared/w/dtype", 'fits "shape"'),
    "no dtype": ({"shape": [1]}, "/shared/w", "has a shape but no dtype"),
    "unknown dtype": ({"shape": [1], "dtype": "flaot32"}, "/shared/w/dtype", 'mean "float32"?'),
    "objects": ({"shape": [1], "dtype": "object"}, "/shared/w/dtype", "Python objects"),
    "text": ({"shape": [1], "dtype": "<U8"}, "/shared/w/dtype", "allowed: float32"),
    "negative": ({"shape": [2, -1], "dtype": "f4"}, "/shared/w/shape/1", "from 0 to"),
    "not whole": ({"shape": [1.5], "dtype": "f4"}, "/shared/w/shape/0", "a whole number"),
    "a number": ({"shape": 3, "dtype": "f4"}, "/shared/w/shape", "a list"),
    "too many axes": ({"shape": [1] * 33, "dtype": "f4"}, "/shared/w/shape", "at most 32"),
    "overflow": ({"shape": [2**40, 2**40], "dtype": "f4"}, "/shared/w/shape", "2^63 bytes"),
    "overflow of nothing": ({"shape": [2**50, 0, 2**50], "dtype": "f4"}, "/shared/w", "2^63"),
    "too large": ({"shape": [2**46], "dtype": "f4"}, "/shared/w", "256.0 TiB"),
    "unknown field": ({"shpae": [1]}, "/shared/w/shpae", 'did you mean "shape"?'),
    "no object": (3, "/shared/w", "an object of npy, safetensors"),
    "missing file": ({"npy": "none.npy"}, "/shared/w/npy", "No such file"),
    "a folder": ({"npy": "."}, "/shared/w/npy", "is not a regular file"),
    "object file": ({"npy": "objects.npy"}, "/shared/w/npy", "dtype object"),
    "record file": ({"npy": "records.npy"}, "/shared/w/npy", "holds records"),
    "text file": ({"npy": "text.npy"}, "/shared/w/npy", 'the dtype "<U3"'),
    "cut file": ({"npy": "cut.npy"}, "/shared/w/npy", "is cut off"),
    "lying file": ({"npy": "lying.npy"}, "/shared/w/npy", "is cut off"),
    "no array": ({"npy": "job.json"}, "/shared/w/npy", "is not a .npy file"),
    "no safetensors": ({"safetensors": "text.npy"}, "/shared/w/safetensors", "not a .safetensors"),
    "no tensor": ({"safetensors": "one.safetensors"}, "/shared/w/safetensors", "has no tensor"),
    "8 bits": (
        {"safetensors": "one.safetensors", "tensor": "x"},
        "/shared/w/safetensors",
        '"F8_E4M3", which numpy has not',
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_shared_is_refused(run_job: RunCommand, tmp_path: Path, case: str) -> None:
    entry, pointer, words = REFUSED[case]
    header = json.dumps({"x": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}).encode()
    files = {
        "objects.npy": npy_text("'|O'", "(1,)", 8),
        "records.npy": npy_text("[('a', '<f4')]", "(1,)", 4),
        "text.npy": npy_text("'<U3'", "(1,)", 12),
        "cut.npy": npy_text("'<f4'", "(4,)", 15),
        "lying.npy": npy_text("'<f4'", "(4611686018427387904, 4)", 16),
        "one.safetensors": len(header).to_bytes(8, "little") + header + b"\0",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    run = run_job(shared_job(shared={"w": entry}), scripts={"job.py": ROWS}).check(2)
    assert f": {pointer}" in run.stderr and words in run.stderr
    assert "job.json:" in run.stderr
    assert not run.run_dir.exists()


@pytest.mark.parametrize("name", ["", ".w", "-w", "a/b", "a b", "w\n", "w" * 101, "\u00e9"])
def test_names_that_are_refused(run_job: RunCommand, name: str) -> None:
    entry = {"shape": [1], "dtype": "f4"}
    run = run_job(shared_job(shared={"ok": entry, name: entry}), scripts={"job.py": ROWS}).check(2)
    assert "letters, digits" in run.stderr
    assert not run.run_dir.exists()


def test_too_many(run_job: RunCommand) -> None:
    shared = {f"w{number}": {"shape": [1], "dtype": "f4"} for number in range(401)}
    run = run_job(shared_job(shared=shared), scripts={"job.py": ROWS}).check(2)
    assert "/shared: found 401 tensors, allowed: at most 400" in run.stderr
    shared = {f"{number:0100}": {"shape": [1] * 32, "dtype": "f4"} for number in range(400)}
    run = run_job(shared_job(shared=shared), scripts={"job.py": ROWS}).check(2)
    assert "more shared tensors than one variable can list" in run.stderr


def test_a_file_larger_than_the_memory(run_mprun: RunCommand, tmp_path: Path) -> None:
    """The size that a sparse file claims is checked before the file is read."""
    path = tmp_path / "w.npy"
    path.write_bytes(npy_text("'<f4'", "(2199023255552,)"))
    with open(path, "r+b") as file:
        try:
            file.truncate(4 * 2199023255552 + 4096)
        except OSError:
            pytest.skip("the file system takes no file of that size")
    (tmp_path / "job.py").write_text(ROWS)
    (tmp_path / "job.json").write_text(json.dumps(shared_job(shared={"w": {"npy": "w.npy"}})))
    run = run_mprun(tmp_path / "job.json").check(2)
    assert "take 8.0 TiB of memory (8796093022208 bytes)" in run.stderr
    assert "MemAvailable" in run.stderr or "control group" in run.stderr


def test_no_space_to_save_them(run_job: RunCommand, mount_disk: MountDisk) -> None:
    """An obvious lack of space is reported before anything is launched."""
    disk = mount_disk("1m")
    shared = {"w": {"shape": [300_000], "dtype": "f4"}}
    run = run_job(
        shared_job(shared=shared), "--output", disk / "a/run", scripts={"job.py": ROWS}
    ).check(2)
    assert "no space to save the shared tensors" in run.stderr and str(disk) in run.stderr
    assert not list(disk.iterdir())


def test_the_disk_is_full_in_the_end(run_job: RunCommand, mount_disk: MountDisk) -> None:
    """One error names what is lost; everything else is kept."""
    script = """
import os

import mprun


def fill(row):
    mprun.shared["large"][:] = 1
    mprun.shared["small"][row] = row
    if row == 5:
        with open(os.environ["MPRUN_RUN_DIR"] + "/ballast", "wb") as file:
            file.write(bytes(500_000))
    return row
"""
    disk = mount_disk("1m")
    shared = {
        "large": {"shape": [700_000], "dtype": "i1"},
        "small": {"shape": [6], "dtype": "i8"},
    }
    run = run_job(
        shared_job(shared=shared), "--output", disk / "run", scripts={"job.py": script}
    ).check(125)
    complaints = [line for line in run.stderr.splitlines() if "No space left" in line]
    assert len(complaints) == 1 and "shared/large.npy" in complaints[0]
    assert "--output" in complaints[0]
    assert run.values() == list(range(6))
    assert saved(run, "small").tolist() == list(range(6))
    assert [path.name for path in (run.run_dir / "shared").iterdir()] == ["small.npy"]
    assert list(shared_of(run)) == ["small"]
    assert run.summary()["exit_code"] == 125


def test_files_may_not_be_that_large(run_job: RunCommand) -> None:
    """`ulimit -f` would end mprun by a signal: mprun checks it first."""
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    shared = {"w": {"shape": [300_000], "dtype": "f4"}}
    run = run_job(shared_job(shared=shared), scripts={"job.py": ROWS}, preexec_fn=limit).check(2)
    assert "the limit is 1000000" in run.stderr and "ulimit -f" in run.stderr
