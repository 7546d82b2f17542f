"""Tensors that all processes of a job share: mapped by each, saved however the job ends."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import harness
from harness import RunCommand, StartCommand
from tensor_jobs import equal, load_safetensors, saved, shared_job, shared_of

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

# Every task marks its row; that of row 3 then does what is asked for.
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


# The kernel's settings for huge pages; not every kernel has them.
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage")
# What the kernel says about the mapping of the tensors: its flags, and the kB of it that are in huge pages.
MAPPING = """
import re

import mprun


def look(_):
    table = mprun.shared["table"]
    sums = [int(table.sum()), int(mprun.shared["zeros"].sum())]
    with open("/proc/self/smaps") as maps:
        parts = re.split("^(?=[0-9a-f]+-[0-9a-f]+ )", maps.read(), flags=re.M)
    mapping = next(part for part in parts if "/memfd:mprun-shared" in part.partition("\\n")[0])
    flags = re.search(r"^VmFlags: (.*)", mapping, re.M).group(1).split()
    return [sums, "hg" in flags, int(re.search(r"^ShmemPmdMapped: +([0-9]+)", mapping, re.M).group(1))]
"""


@pytest.mark.skipif(not HUGE_PAGES.exists(), reason="this kernel has no huge pages")
def test_huge_pages_are_used_where_the_kernel_offers_them(run_job: RunCommand, tmp_path: Path) -> None:
    """Most kernels offer none for shared memory unless root asks for it."""
    table = numpy.ones(8 << 20, dtype="u1")
    numpy.save(tmp_path / "table.npy", table)
    shared = {"table": {"npy": "table.npy"}, "zeros": {"shape": [1 << 20], "dtype": "float64"}}
    spec = {"script": "job.py:look", "processes": 1, "shared": shared, "inputs": {"range": 1}}
    [[sums, asked, kilobytes]] = run_job(spec, scripts={"job.py": MAPPING}).check().values()
    assert sums == [table.size, 0]
    assert asked
    states = (HUGE_PAGES / "shmem_enabled").read_text()
    assert (kilobytes == 0) == ("[never]" in states or "[deny]" in states)


POOL = Path("/proc/sys/vm/nr_hugepages")
IN_POOL = """
import os
import re

import mprun


def look(row):
    sums = [int(mprun.shared["table"].sum()), int(mprun.shared["zeros"].sum())]
    mprun.shared["zeros"][row] = row + 1
    with open("/proc/self/smaps") as maps:
        parts = re.split("^(?=[0-9a-f]+-[0-9a-f]+ )", maps.read(), flags=re.M)
    mapping = next(part for part in parts if "/memfd:mprun-shared" in part.partition("\\n")[0])
    return [sums[0], re.search(r"^KernelPageSize: +([0-9]+) kB", mapping, re.M).group(1)]
"""


@pytest.fixture(name="pool")
def add_to_pool() -> Iterator[int]:
    """The kernel's pool, with four more huge pages; their size in kB."""
    size = re.search(r"^Hugepagesize: +([0-9]+) kB", Path("/proc/meminfo").read_text(), re.M)
    if size is None or int(size[1]) > 2048 or not os.access(POOL, os.W_OK):
        pytest.skip("no pool of huge pages of 2 MiB that these tests may enlarge")
    before = int(POOL.read_text())
    try:
        POOL.write_text(str(before + 4))
        if int(POOL.read_text()) < before + 4:
            pytest.skip("the kernel finds no memory for huge pages")
        yield int(size[1])
    except OSError as error:
        pytest.skip(f"{POOL}: {error.strerror}")
    finally:
        POOL.write_text(str(before))


def free_in_pool() -> int:
    """Huge pages of the pool that no file has."""
    facts = dict(re.findall(r"^(HugePages_\w+): +([0-9]+)", Path("/proc/meminfo").read_text(), re.M))
    return int(facts["HugePages_Free"]) - int(facts["HugePages_Rsvd"])


def test_reserved_huge_pages_hold_the_tensors(run_job: RunCommand, tmp_path: Path, pool: int) -> None:
    """They are back in the pool after the job. If it has too few, nothing is launched. One test, for there is one pool."""
    table = numpy.ones((pool << 10) + 1, dtype="u1")
    numpy.save(tmp_path / "table.npy", table)
    shared = {"table": {"npy": "table.npy"}, "zeros": {"shape": [4], "dtype": "int64"}}
    spec = {"script": "job.py:look", "processes": 2, "huge_pages": "hugetlb", "inputs": {"range": 4}}
    free = free_in_pool()
    for method in ("fork", "spawn", "forkserver"):
        run = run_job(spec | {"start_method": method, "shared": shared}, scripts={"job.py": IN_POOL}).check()
        assert run.values() == [[table.size, str(pool)]] * 4
        assert equal(saved(run, "zeros"), numpy.arange(1, 5))
        assert equal(saved(run, "table"), table)
        assert free_in_pool() == free
    zeros = {"zeros": {"shape": [(free + 1) * pool << 10], "dtype": "uint8"}}
    refused = run_job(spec | {"shared": zeros}, scripts={"job.py": IN_POOL})
    assert refused.returncode == 2
    assert f"/huge_pages: found \"hugetlb\", but the shared tensors take {free + 1} pages of" in refused.stderr
    assert not refused.run_dir.exists()


@pytest.mark.parametrize("kind", ["tasks", "ranks"])
def test_all_write_their_rows(
    run_job: RunCommand, tmp_path: Path, start_method: str, kind: str
) -> None:
    weights = numpy.arange(30, dtype="f4").reshape(6, 5)
    numpy.save(tmp_path / "weights.npy", weights)
    shared = {"weights": {"npy": "weights.npy"}, "sums": {"shape": [6], "dtype": "int64"}}
    spec = shared_job(start_method=start_method, shared=shared)
    if kind == "ranks":
        del spec["inputs"]
        spec["script"] = "rank.py"
    run = run_job(spec, scripts={"job.py": ROWS, "rank.py": RANK}).check()
    assert equal(saved(run, "weights"), weights + numpy.arange(1, 7, dtype="f4")[:, None])
    assert equal(saved(run, "sums"), weights.sum(axis=1).astype("i8"))
    assert run.summary()["shared"] == [
        {"name": "sums", "file": "shared/sums.npy", "dtype": "<i8", "shape": [6]},
        {"name": "weights", "file": "shared/weights.npy", "dtype": "<f4", "shape": [6, 5]},
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
    found = {}
    for name, tensor in mprun.shared.items():
        found[name] = [type(tensor).__module__, str(tensor.dtype), list(tensor.shape)]
        if tensor.shape != ():
            tensor[:1] = tensor[:1]
        else:
            tensor[()] += 1
    return found
"""


def test_arrays_of_every_kind_stay_what_they_are(run_job: RunCommand, tmp_path: Path) -> None:
    for name, array in ARRAYS.items():
        numpy.save(tmp_path / f"{name}.npy", array)
    shared: dict[str, Any] = {name: {"npy": f"{name}.npy"} for name in ARRAYS}
    shared["none"] = {"shape": [], "dtype": ">f8"}
    shared["nothing"] = {"shape": [3, 0], "dtype": "bfloat16"}
    run = run_job(shared_job(inputs={"range": 1}, shared=shared), scripts={"job.py": KINDS}).check()
    for name, array in ARRAYS.items():
        file = (run.run_dir / "shared" / f"{name}.npy").read_bytes()
        wanted = (tmp_path / f"{name}.npy").read_bytes()
        if name != "scalar":
            assert file[-array.nbytes :] == wanted[-array.nbytes :], name
        again = saved(run, name)
        assert (again.dtype, again.shape) == (array.dtype, array.shape)
        assert again.flags.f_contiguous == array.flags.f_contiguous
    assert (saved(run, "scalar"), saved(run, "none")) == (3.5, 1)
    [found] = run.values()
    assert found["fortran"] == ["numpy", "float64", [3, 4]]
    assert found["big-endian"] == ["numpy", ">i4", [4]]
    assert found["nothing"] == ["torch", "torch.bfloat16", [3, 0]]
    path = run.run_dir / shared_of(run)["nothing"]["file"]
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
    spec = shared_job(start_method=start_method, shared=shared)
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
    """A forked worker has its host's mapping; others map when they need a tensor."""
    spec = shared_job(
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
    spec = shared_job(inputs={"range": 2}, shared=shared)
    run = run_job(spec, scripts={"job.py": script}).check()
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
    spec = shared_job(shared={"rows": {"shape": [6], "dtype": "i8"}}, retries=0)
    if kind == "ranks":
        del spec["inputs"], spec["retries"]
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
    spec = shared_job(
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
    spec = shared_job(
        processes=1, limits={"job_seconds": 3}, shared={"rows": {"shape": [6], "dtype": "i8"}}
    )
    scripts = {"job.py": ENDS.format(end="wait_for('never', seconds=600)")}
    run = run_job(spec, scripts={**scripts, "events.py": harness.EVENTS}).check(124)
    assert saved(run, "rows")[:4].tolist() in ([1, 2, 3, 4], [0] * 4)  # a slow start


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
    run = run_job(shared_job(inputs=inputs, shared=shared), scripts=scripts).check()
    names = ["a.b-c", "rows"]
    assert run.values() == [
        [False, names, 2, "'w': there is no such shared tensor, there are a.b-c, rows"],
        [True, names, 2, "<mprun.shared: a.b-c <f4 [0], rows <i8 [2, 3]>"],
    ]
    run = run_job(shared_job(inputs=inputs), scripts=scripts).check()
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


def test_without_mprun(start_plain: StartCommand) -> None:
    """A script that imports the package outside of a job."""
    package = harness.MPRUN_BIN.parent.parent / "lib/mprun/python"
    code = "import mprun; print(len(mprun.shared), 'w' in mprun.shared); mprun.shared['w']"
    run = start_plain(harness.MPRUN_PYTHON, "-c", code, env={"PYTHONPATH": str(package)}).wait()
    assert run.stdout == "0 False\n"
    assert "KeyError: \"'w': no tensors are shared here" in run.stderr


def test_check_lists_them(run_mprun: RunCommand, tmp_path: Path) -> None:
    numpy.save(tmp_path / "w.npy", numpy.zeros((1000, 500), "f4"))
    (tmp_path / "job.py").write_text(ROWS)
    shared = {"w": {"npy": "w.npy"}, "h": {"shape": [8], "dtype": "bfloat16"}}
    (tmp_path / "job.json").write_text(json.dumps(shared_job(shared=shared)))
    found = run_mprun("check", tmp_path / "job.json").check().stdout
    [line] = [line for line in found.splitlines() if line.startswith("shared ")]
    assert f"h bfloat16 [8], w <f4 [1000,500] from {tmp_path}/w.npy, 1.9 MiB in all" in line


def test_the_command_line_adds_and_replaces(run_job: RunCommand) -> None:
    script = "import mprun\n\n\ndef fill(_):\n    return list(mprun.shared)\n"
    shared = {"w": {"npy": "none.npy"}, "h": {"shape": [8], "dtype": "f4"}}
    entry = '{"shape": [2], "dtype": "f8"}'
    run = run_job(
        shared_job(inputs={"range": 1}, shared=shared),
        *("--set", f"shared.w={entry}", "--set", f"shared.x={entry}"),
        scripts={"job.py": script},
    ).check()
    assert run.values() == [["h", "w", "x"]]
    assert saved(run, "w").dtype == "f8"
