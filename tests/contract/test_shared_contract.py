"""Tensors that all processes of a job share: mapped by each, saved in the end, however the job ends."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy
import pytest

import harness
from harness import MountDisk, Run, RunCommand, StartCommand
from tensor_jobs import equal, load_safetensors

ROWS = """
import os

import mprun


def fill(row):
    weights = mprun.shared["weights"]
    mprun.shared["sums"][row] = weights[row].sum()
    weights[row] += row + 1
    return os.getpid()
"""

RANK = """
import mprun

for row in range(mprun.rank(), 6, mprun.world_size()):
    weights = mprun.shared["weights"]
    mprun.shared["sums"][row] = weights[row].sum()
    weights[row] += row + 1
"""

# Every task marks its row; of row 3 what is asked for happens then.
ENDS = """
import os
import signal

import mprun
from events import mark, wait_for


def fill(row):
    mprun.shared["rows"][row] = row + 1
    if row == 3:
        {end}


if __name__ == "__main__":
    fill(mprun.rank() + 2)
"""


def saved(run: Run, name: str) -> numpy.ndarray:
    """A saved tensor, as anybody would read it."""
    return numpy.load(run.run_dir / "shared" / f"{name}.npy", allow_pickle=False)


def shared_of(run: Run) -> dict[str, dict[str, Any]]:
    """What summary.json says of the shared tensors, by name."""
    return {entry["name"]: entry for entry in run.summary()["shared"]}


def job(**more: Any) -> dict[str, Any]:
    """Six tasks of two workers."""
    return {"script": "job.py:fill", "processes": 2, "inputs": {"range": 6}, **more}


@pytest.mark.parametrize("kind", ["tasks", "ranks"])
def test_all_write_their_rows(
    run_job: RunCommand, tmp_path: Path, start_method: str, kind: str
) -> None:
    weights = numpy.arange(30, dtype="f4").reshape(6, 5)
    numpy.save(tmp_path / "weights.npy", weights)
    shared = {"weights": {"npy": "weights.npy"}, "sums": {"shape": [6], "dtype": "int64"}}
    spec = job(start_method=start_method, shared=shared)
    if kind == "ranks":
        del spec["inputs"]
        spec["script"] = "rank.py"
    run = run_job(spec, scripts={"job.py": ROWS, "rank.py": RANK}).check()
    assert equal(saved(run, "weights"), weights + numpy.arange(1, 7, dtype="f4")[:, None])
    assert equal(saved(run, "sums"), weights.sum(axis=1).astype("i8"))
    assert run.summary()["shared"] == [
        {"name": "sums", "path": "shared/sums.npy", "dtype": "<i8", "shape": [6]},
        {"name": "weights", "path": "shared/weights.npy", "dtype": "<f4", "shape": [6, 5]},
    ]
    assert equal(numpy.load(tmp_path / "weights.npy"), weights)
    assert sorted(path.name for path in (run.run_dir / "shared").iterdir()) == [
        "sums.npy",
        "weights.npy",
    ]
    resolved = json.loads((run.run_dir / "job.json").read_text())["shared"]
    assert resolved["weights"] == {"npy": str(tmp_path / "weights.npy")}


# What a file may hold, and how.
ARRAYS = {
    "float32": numpy.arange(6, dtype="f4").reshape(2, 3) / 7,
    "float16": numpy.arange(6, dtype="f2").reshape(2, 3) / 7,
    "float64": numpy.arange(5) / 3,
    "int8": numpy.arange(-3, 3, dtype="i1"),
    "uint64": numpy.array([2**64 - 1, 0], "u8"),
    "bool": numpy.array([True, False, True]),
    "complex64": numpy.array([1 + 2j, 3], "c8"),
    "complex128": numpy.array([[1 + 2j], [3]]),
    "big-endian": numpy.arange(4, dtype=">i4"),
    "fortran": numpy.asfortranarray(numpy.arange(12.0).reshape(3, 4)),
    "scalar": numpy.array(2.5),
    "empty": numpy.zeros((0, 3), "i2"),
}

KINDS = """
import mprun


def fill(_):
    told = {}
    for name, tensor in mprun.shared.items():
        told[name] = [type(tensor).__module__, str(tensor.dtype), list(tensor.shape)]
        if tensor.shape != ():
            tensor[:1] = tensor[:1]
        else:
            tensor[()] += 1
    return told
"""


def test_arrays_of_every_kind_stay_what_they_are(run_job: RunCommand, tmp_path: Path) -> None:
    for name, array in ARRAYS.items():
        numpy.save(tmp_path / f"{name}.npy", array)
    shared: dict[str, Any] = {name: {"npy": f"{name}.npy"} for name in ARRAYS}
    shared["none"] = {"shape": [], "dtype": ">f8"}
    shared["nothing"] = {"shape": [3, 0], "dtype": "bfloat16"}
    run = run_job(job(inputs={"range": 1}, shared=shared), scripts={"job.py": KINDS}).check()
    for name, array in ARRAYS.items():
        file = (run.run_dir / "shared" / f"{name}.npy").read_bytes()
        wanted = (tmp_path / f"{name}.npy").read_bytes()
        if name != "scalar":
            assert file[-array.nbytes :] == wanted[-array.nbytes :], name
        again = saved(run, name)
        assert (again.dtype, again.shape) == (array.dtype, array.shape)
        assert again.flags.f_contiguous == array.flags.f_contiguous
    assert (saved(run, "scalar"), saved(run, "none")) == (3.5, 1)
    [told] = run.values()
    assert told["fortran"] == ["numpy", "float64", [3, 4]]
    assert told["big-endian"] == ["numpy", ">i4", [4]]
    assert told["nothing"] == ["torch", "torch.bfloat16", [3, 0]]
    path = run.run_dir / shared_of(run)["nothing"]["path"]
    assert load_safetensors(path) == {"nothing": ("BF16", [3, 0], b"")}


BRAIN = """
import mprun
import torch


def fill(row):
    assert (mprun.shared["old"][row] == row).all()
    mprun.shared["new"][row] = mprun.shared["old"][row] * 2
    rows = torch.from_numpy(mprun.shared["plain"])
    assert rows.data_ptr() == mprun.shared["plain"].ctypes.data
    rows[row] += 1
"""


def test_torch_shares_the_memory(run_job: RunCommand, tmp_path: Path, start_method: str) -> None:
    """bfloat16, which numpy lacks, from a .safetensors file and back into one."""
    rows = numpy.arange(6, dtype="f4")[:, None].repeat(3, 1)
    data = (rows.view("u4") >> 16).astype("u2").tobytes()
    plain = numpy.full(6, 0.5, "f4").tobytes()
    header = json.dumps(
        {
            "brain": {"dtype": "BF16", "shape": [6, 3], "data_offsets": [0, 36]},
            "plain": {"dtype": "F32", "shape": [6], "data_offsets": [36, 60]},
        }
    ).encode()
    prefix = len(header).to_bytes(8, "little")
    (tmp_path / "all.safetensors").write_bytes(prefix + header + data + plain)
    shared = {
        "old": {"safetensors": "all.safetensors", "tensor": "brain"},
        "plain": {"safetensors": "all.safetensors"},
        "new": {"shape": [6, 3], "dtype": "bfloat16"},
    }
    spec = job(start_method=start_method, shared=shared)
    run = run_job(spec, scripts={"job.py": BRAIN}).check()
    assert equal(saved(run, "plain"), numpy.full(6, 1.5, "f4"))
    assert load_safetensors(run.run_dir / "shared/old.safetensors") == {
        "old": ("BF16", [6, 3], data)
    }
    doubled = ((2 * rows).view("u4") >> 16).astype("u2").tobytes()
    assert load_safetensors(run.run_dir / "shared/new.safetensors") == {
        "new": ("BF16", [6, 3], doubled)
    }
    assert shared_of(run)["new"]["dtype"] == "bfloat16"


MAPPINGS = """
import mprun


def count():
    with open("/proc/self/maps") as maps:
        return sum("memfd:mprun-shared" in line for line in maps)


def setup():
    mprun.shared["rows"][:] = 1


def fill(row):
    before = count()
    mprun.shared["rows"][row] += row
    mprun.shared["more"][:] = 1
    return [before, count()]
"""


def test_a_process_maps_once(run_job: RunCommand, start_method: str) -> None:
    """A forked worker has the mapping of its host; others make theirs when they want a tensor."""
    spec = job(
        start_method=start_method,
        setup="setup" if start_method == "fork" else "count",
        shared={"rows": {"shape": [6], "dtype": "i8"}, "more": {"shape": [2], "dtype": "f4"}},
    )
    run = run_job(spec, scripts={"job.py": MAPPINGS}).check()
    first = 1 if start_method == "fork" else 0
    assert all(value in ([first, 1], [1, 1]) for value in run.values())
    assert saved(run, "rows").tolist() == [first + row for row in range(6)]


def test_grandchildren_and_commands_find_them(run_job: RunCommand) -> None:
    script = """
import multiprocessing
import subprocess
import sys

import mprun

ADD = "import mprun, sys; mprun.shared['rows'][int(sys.argv[1])] += 1"


def add(row):
    mprun.shared["rows"][row] += 1


def fill(row):
    subprocess.run([sys.executable, "-c", ADD, str(row)], check=True)
    for method in ("fork", "spawn"):
        process = multiprocessing.get_context(method).Process(target=add, args=(row,))
        process.start()
        process.join()
        assert process.exitcode == 0
"""
    shared = {"rows": {"shape": [6], "dtype": "i8"}}
    run = run_job(job(inputs={"range": 2}, shared=shared), scripts={"job.py": script}).check()
    assert saved(run, "rows").tolist() == [3, 3, 0, 0, 0, 0]
    add = "import mprun, sys; mprun.shared['rows'][int(sys.argv[1])] += 1"
    command = [harness.MPRUN_PYTHON, "-c", add, "{}"]
    run = run_job({"command": command, "inputs": {"range": 6}, "shared": shared}).check()
    assert saved(run, "rows").tolist() == [1] * 6


@pytest.mark.parametrize("kind", ["tasks", "ranks"])
@pytest.mark.parametrize(
    "end", ["raise ValueError(row)", "os.kill(os.getpid(), signal.SIGKILL)", "os._exit(3)"]
)
def test_saved_when_a_process_fails(run_job: RunCommand, kind: str, end: str) -> None:
    spec = job(shared={"rows": {"shape": [6], "dtype": "i8"}}, retries=0)
    if kind == "ranks":
        del spec["inputs"]
        spec["script"] = "job.py"
    scripts = {"job.py": ENDS.format(end=end), "events.py": harness.EVENTS}
    run = run_job(spec, scripts=scripts).check(1)
    assert saved(run, "rows")[3] == 4
    if kind == "tasks":
        assert saved(run, "rows").tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("signals", [[signal.SIGINT] * 2, [signal.SIGTERM, signal.SIGTERM]])
def test_saved_when_interrupted(
    start_job: StartCommand, tmp_path: Path, start_method: str, signals: list[int]
) -> None:
    spec = job(
        start_method=start_method, processes=1, shared={"rows": {"shape": [6], "dtype": "i8"}}
    )
    end = "mark('began'); wait_for('never', seconds=600)"
    scripts = {"job.py": ENDS.format(end=end), "events.py": harness.EVENTS}
    running = start_job(spec, scripts=scripts)
    harness.wait_until(lambda: harness.marks(tmp_path / "began"), timeout=60, what="task 3")
    for number in signals:
        running.send_signal(number)
    run = running.wait(60).check(128 + signals[0])
    assert saved(run, "rows").tolist() == [1, 2, 3, 4, 0, 0]
    assert list(shared_of(run)) == ["rows"]


def test_saved_when_the_time_is_over(run_job: RunCommand) -> None:
    spec = job(
        processes=1, limits={"job_seconds": 3}, shared={"rows": {"shape": [6], "dtype": "i8"}}
    )
    scripts = {"job.py": ENDS.format(end="wait_for('never', seconds=600)")}
    run = run_job(spec, scripts={**scripts, "events.py": harness.EVENTS}).check(124)
    assert saved(run, "rows")[:4].tolist() in ([1, 2, 3, 4], [0] * 4)  # a slow start


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
    told = [
        attempt(lambda: os.ftruncate(fd, 0)),
        attempt(lambda: os.ftruncate(fd, 1 << 30)),
        attempt(lambda: fcntl.fcntl(fd, ADD_SEALS, SEAL_WRITE)),
    ]
    os.close(fd)
    rows[row] = row + 1
    os.makedirs("out/shared", exist_ok=True)
    return told
"""


def test_nobody_can_take_the_memory_away(run_job: RunCommand) -> None:
    spec = job(shared={"rows": {"shape": [6], "dtype": "i8"}})
    run = run_job(spec, scripts={"job.py": HOSTILE}).check()
    assert run.values() == [["EPERM", "EPERM", "EPERM"]] * 6
    assert saved(run, "rows").tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("what", ["link", "file"])
def test_what_a_task_puts_in_the_place_of_the_folder(run_job: RunCommand, what: str) -> None:
    """mprun is not led elsewhere, and says so."""
    make = {"link": "os.symlink('..', path)", "file": "open(path, 'w').close()"}[what]
    script = f"""
import os


def fill(row):
    path = os.environ["MPRUN_RUN_DIR"] + "/shared"
    {make}
"""
    spec = job(inputs={"range": 1}, shared={"rows": {"shape": [6], "dtype": "i8"}})
    run = run_job(spec, scripts={"job.py": script}).check(125)
    assert "cannot write" in run.stderr and "out/shared" in run.stderr
    assert run.results()[0]["status"] == "ok"
    assert run.summary()["shared"] == []
    assert not list(run.run_dir.rglob("rows.npy"))


ASKS = """
import sys

import mprun

assert "numpy" not in sys.modules


def fill(name):
    found = [name in mprun.shared, sorted(mprun.shared), len(mprun.shared)]
    try:
        mprun.shared[name]
    except KeyError as error:
        return [*found, error.args[0]]
    return [*found, repr(mprun.shared)]
"""


def test_names_that_are_not_there(run_job: RunCommand, tmp_path: Path) -> None:
    inputs = {"items": ["w", "rows"]}
    scripts = {"job.py": ASKS}
    shared = {"rows": {"shape": [2, 3], "dtype": "i8"}, "a.b-c": {"shape": [0], "dtype": "f4"}}
    run = run_job(job(inputs=inputs, shared=shared), scripts=scripts).check()
    names = ["a.b-c", "rows"]
    assert run.values() == [
        [False, names, 2, "'w': there is no such shared tensor, there are a.b-c, rows"],
        [True, names, 2, "<mprun.shared: a.b-c <f4 [0], rows <i8 [2, 3]>"],
    ]
    run = run_job(job(inputs=inputs), scripts=scripts).check()
    missing = "no tensors are shared here; a job of mprun names them in its field 'shared'"
    assert run.values()[0] == [False, [], 0, f"'w': {missing}"]
    assert run.summary()["shared"] == []
    assert not (run.run_dir / "shared").exists()


def test_a_job_inside_of_a_job_has_its_own(run_job: RunCommand, tmp_path: Path) -> None:
    inner = {"script": "inner.py:ask", "inputs": {"range": 1}, "python": harness.MPRUN_PYTHON}
    (tmp_path / "inner.json").write_text(json.dumps(inner))
    (tmp_path / "inner.py").write_text(
        "import mprun\n\n\ndef ask(_):\n    return list(mprun.shared)\n"
    )
    command = [str(harness.MPRUN_BIN), "-q", "--results", "-", "inner.json", "--output", "inner"]
    shared = {"rows": {"shape": [2, 3], "dtype": "i8"}}
    run = run_job({"command": command, "inputs": {"range": 1}, "shared": shared}).check()
    assert json.loads(run.values()[0]["stdout"])["value"] == []


# --- specs that are wrong, machines that are too small -------------------------------------------


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
    run = run_job(job(shared={"w": entry}), scripts={"job.py": ROWS}).check(2)
    assert f": {pointer}" in run.stderr and words in run.stderr
    assert "job.json:" in run.stderr
    assert not run.run_dir.exists()


@pytest.mark.parametrize("name", ["", ".w", "-w", "a/b", "a b", "w\n", "w" * 101, "\u00e9"])
def test_names_that_are_refused(run_job: RunCommand, name: str) -> None:
    entry = {"shape": [1], "dtype": "f4"}
    run = run_job(job(shared={"ok": entry, name: entry}), scripts={"job.py": ROWS}).check(2)
    assert "letters, digits" in run.stderr
    assert not run.run_dir.exists()


def test_too_many(run_job: RunCommand) -> None:
    shared = {f"w{number}": {"shape": [1], "dtype": "f4"} for number in range(401)}
    run = run_job(job(shared=shared), scripts={"job.py": ROWS}).check(2)
    assert "/shared: found 401 tensors, allowed: at most 400" in run.stderr
    shared = {f"{number:0100}": {"shape": [1] * 32, "dtype": "f4"} for number in range(400)}
    run = run_job(job(shared=shared), scripts={"job.py": ROWS}).check(2)
    assert "more shared tensors than one variable can tell of" in run.stderr


def test_check_tells_of_them(run_mprun: RunCommand, tmp_path: Path) -> None:
    numpy.save(tmp_path / "w.npy", numpy.zeros((1000, 500), "f4"))
    (tmp_path / "job.py").write_text(ROWS)
    shared = {"w": {"npy": "w.npy"}, "h": {"shape": [8], "dtype": "bfloat16"}}
    (tmp_path / "job.json").write_text(json.dumps(job(shared=shared)))
    told = run_mprun("check", tmp_path / "job.json").check().stdout
    [line] = [line for line in told.splitlines() if line.startswith("shared ")]
    assert f"h bfloat16 [8], w <f4 [1000,500] from {tmp_path}/w.npy, 1.9 MiB in all" in line


def test_the_command_line_adds_and_replaces(run_job: RunCommand) -> None:
    script = "import mprun\n\n\ndef fill(_):\n    return list(mprun.shared)\n"
    shared = {"w": {"npy": "none.npy"}, "h": {"shape": [8], "dtype": "f4"}}
    entry = '{"shape": [2], "dtype": "f8"}'
    run = run_job(
        job(inputs={"range": 1}, shared=shared),
        *("--set", f"shared.w={entry}", "--set", f"shared.x={entry}"),
        scripts={"job.py": script},
    ).check()
    assert run.values() == [["h", "w", "x"]]
    assert saved(run, "w").dtype == "f8"


def test_a_file_that_shrinks_before_it_is_read(run_mprun: RunCommand, tmp_path: Path) -> None:
    """A sparse file claims more than the machine has; of what it cannot hold nothing is read."""
    path = tmp_path / "w.npy"
    path.write_bytes(npy_text("'<f4'", "(2199023255552,)"))
    with open(path, "r+b") as file:
        try:
            file.truncate(4 * 2199023255552 + 4096)
        except OSError:
            pytest.skip("the file system takes no file of that size")
    (tmp_path / "job.py").write_text(ROWS)
    (tmp_path / "job.json").write_text(json.dumps(job(shared={"w": {"npy": "w.npy"}})))
    run = run_mprun(tmp_path / "job.json").check(2)
    assert "take 8.0 TiB of memory (8796093022208 bytes)" in run.stderr
    assert "MemAvailable" in run.stderr or "control group" in run.stderr


def test_no_space_to_save_them(run_job: RunCommand, mount_disk: MountDisk) -> None:
    """What obviously cannot fit is told before anything is launched."""
    disk = mount_disk("1m")
    shared = {"w": {"shape": [300_000], "dtype": "f4"}}
    run = run_job(
        job(shared=shared), "--output", disk / "a/run", scripts={"job.py": ROWS}
    ).check(2)
    assert "no space to save the shared tensors" in run.stderr and str(disk) in run.stderr
    assert not list(disk.iterdir())


def test_the_disk_is_full_in_the_end(run_job: RunCommand, mount_disk: MountDisk) -> None:
    """One error says what is lost; everything else is kept."""
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
        job(shared=shared), "--output", disk / "run", scripts={"job.py": script}
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
    """`ulimit -f` would end mprun by a signal: it is looked at before."""
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    shared = {"w": {"shape": [300_000], "dtype": "f4"}}
    run = run_job(job(shared=shared), scripts={"job.py": ROWS}, preexec_fn=limit).check(2)
    assert "the limit is 1000000" in run.stderr and "ulimit -f" in run.stderr


def test_without_mprun(tmp_path: Path) -> None:
    """A script that imports the package outside of a job."""
    package = harness.MPRUN_BIN.parent.parent / "lib/mprun/python"
    code = "import mprun; print(len(mprun.shared), 'w' in mprun.shared); mprun.shared['w']"
    done = subprocess.run(
        [harness.MPRUN_PYTHON, "-c", code],
        env={"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "0 False\n"
    assert "KeyError: \"'w': no tensors are shared here" in done.stderr
