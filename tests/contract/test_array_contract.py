"""Arrays as inputs reach every task without a copy and cannot be changed: for each start method."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import RunCommand

SCRIPT = """
import os
import sys

numpy_before = None


def setup():
    global numpy_before
    numpy_before = "numpy" in sys.modules


def text(value):
    if type(value).__module__ == "torch":
        return [str(value.dtype), list(value.shape), str(value.float().tolist())]
    return [str(value.dtype), list(value.shape), str(value.tolist())]


def run(value):
    return text(value)


def keywords(**values):
    return {name: text(value) for name, value in values.items()}


def was_imported(value):
    return numpy_before


def write(value):
    try:
        value[...] = 0
        return "written"
    except ValueError as error:
        return str(error)


def place(**values):
    # The file that the memory of each array is mapped from, and how often this process maps it.
    with open("/proc/self/maps") as file:
        maps = [line.split(maxsplit=5) for line in file]
    found = {}
    for name, value in values.items():
        address = value.__array_interface__["data"][0]
        for columns in maps:
            begin, end = (int(part, 16) for part in columns[0].split("-"))
            if begin <= address < end:
                path = columns[-1].strip()
                count = sum(other[-1].strip() == path for other in maps)
                found[name] = [os.path.basename(path), columns[1], count, value.flags.writeable]
    return found


def fail_once(value):
    attempt = int(os.environ["MPRUN_ATTEMPT"])
    seen = text(value)
    if attempt == 1:
        raise RuntimeError(str(seen))
    return seen


def die_once(value):
    if os.environ["MPRUN_ATTEMPT"] == "1":
        os.kill(os.getpid(), 9)
    return text(value)
"""

FILES = {"job.py": SCRIPT}

SAVE = """
import numpy

numpy.save("image.npy", numpy.arange(14, dtype="float32").reshape(7, 2))
numpy.save("label.npy", numpy.arange(7, dtype=">i4"))
numpy.save("fortran.npy", numpy.asfortranarray(numpy.arange(6).reshape(3, 2)))
dtype = [("a", "<i4"), ("b'", "<i2", 2)]
numpy.save("record.npy", numpy.array([(1, [2, 3]), (4, [5, 6])], dtype=dtype))
wide = [(f"a column with a long name, number {number}", "<f4") for number in range(600)]
numpy.save("wide.npy", numpy.zeros(3, dtype=wide))  # a header of more than 10,000 bytes
for number, rows in enumerate((3, 0, 2)):
    numpy.save(f"parts/{number}.npy", 10 * number + numpy.arange(rows))
"""


def save_tensors(path: Path, tensors: dict[str, tuple[str, list[int], bytes]]) -> None:
    """Writes a .safetensors file: name to dtype, shape and bytes, the most aligned ones first."""
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


@pytest.fixture
def arrays(tmp_path: Path) -> Path:
    """A folder with arrays."""
    (tmp_path / "parts").mkdir()
    subprocess.run([harness.MPRUN_PYTHON, "-c", SAVE], cwd=tmp_path, check=True, timeout=60)
    return tmp_path


def job(start_method: str, function: str, inputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A job of two workers."""
    spec = {"script": f"job.py:{function}", "start_method": start_method, "processes": 2}
    return {**spec, "inputs": inputs, **more}


# --- what tasks receive ------------------------------------------------------------------------


def test_several_files_by_name(run_job: RunCommand, start_method: str, arrays: Path) -> None:
    inputs: dict[str, Any] = {"npy": {"image": "image.npy", "label": "label.npy"}}
    run = run_job(job(start_method, "keywords", {**inputs, "batch": 4}), scripts=FILES).check()
    assert run.values() == [
        {
            "image": ["float32", [4, 2], "[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]"],
            "label": [">i4", [4], "[0, 1, 2, 3]"],
        },
        {
            "image": ["float32", [3, 2], "[[8.0, 9.0], [10.0, 11.0], [12.0, 13.0]]"],
            "label": [">i4", [3], "[4, 5, 6]"],
        },
    ]
    run = run_job(job(start_method, "keywords", inputs, call="kwargs")).check()
    assert run.values()[6] == {
        "image": ["float32", [2], "[12.0, 13.0]"],
        "label": ["int32", [], "6"],
    }


def test_fortran_order_and_records(run_job: RunCommand, start_method: str, arrays: Path) -> None:
    run = run_job(job(start_method, "run", {"npy": "fortran.npy", "batch": 2}), scripts=FILES)
    assert run.check().values() == [
        ["int64", [2, 2], "[[0, 1], [2, 3]]"],
        ["int64", [1, 2], "[[4, 5]]"],
    ]
    run = run_job(job(start_method, "run", {"npy": "record.npy", "batch": 2})).check()
    ((dtype, shape, values),) = run.values()
    assert ("'a', '<i4'" in dtype, shape) == (True, [2])
    assert re.sub(r"array\((\[.*?\])[^)]*\)", r"\1", values) == "[(1, [2, 3]), (4, [5, 6])]"
    run = run_job(job(start_method, "run", {"npy": "wide.npy", "batch": 3})).check()
    assert run.values()[0][1] == [3]


def test_folders_and_patterns(run_job: RunCommand, start_method: str, arrays: Path) -> None:
    """Without batch a task is a file; with it each task has rows of one file."""
    run = run_job(job(start_method, "run", {"npy": "parts/"}), scripts=FILES).check()
    assert [value[2] for value in run.values()] == ["[0, 1, 2]", "[]", "[20, 21]"]
    run = run_job(job(start_method, "run", {"npy": "parts", "batch": 2})).check()
    assert [value[2] for value in run.values()] == ["[0, 1]", "[2]", "[20, 21]"]
    run = run_job(job(start_method, "run", {"npy": "parts/[12].npy", "batch": 1})).check()
    assert [value[2] for value in run.values()] == ["[20]", "[21]"]


def test_many_files(run_job: RunCommand, start_method: str, tmp_path: Path) -> None:
    """Their names exceed what the socket to a new process takes at once."""
    folder = tmp_path / ("many-" * 30)
    folder.mkdir()
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }".ljust(117) + b"\n"
    content = b"\x93NUMPY\x01\x00" + bytes([118, 0]) + header + bytes(2)
    for number in range(3000):
        (folder / f"{number:04}.npy").write_bytes(content + bytes([number % 251]))
    spec = job(start_method, "last", {"npy": folder.name, "batch": 3})
    script = "def last(rows):\n    return int(rows[2])\n"
    run = run_job(spec, scripts={"job.py": script}).check()
    assert run.values() == [number % 251 for number in range(3000)]


TENSORS: dict[str, tuple[str, list[int], bytes]] = {
    "f64": ("F64", [3], struct.pack("<3d", 1, 2, 3)),
    "i64": ("I64", [3], struct.pack("<3q", -1, 2, 3)),
    "u64": ("U64", [3], struct.pack("<3Q", 1, 2, 2**64 - 1)),
    "f32": ("F32", [3, 2], struct.pack("<6f", 1, 2, 3, 4, 5, 6)),
    "i32": ("I32", [3], struct.pack("<3i", -1, 2, 3)),
    "u32": ("U32", [3], struct.pack("<3I", 1, 2, 2**32 - 1)),
    "f16": ("F16", [3], struct.pack("<3e", 1, 2, 0.5)),
    "bf16": ("BF16", [3, 2], bytes.fromhex("803f 0040 4040 8040 a040 c040")),  # 1 to 6
    "i16": ("I16", [3], struct.pack("<3h", -1, 2, 3)),
    "u16": ("U16", [3], struct.pack("<3H", 1, 2, 65535)),
    "i8": ("I8", [3], struct.pack("<3b", -1, 2, 3)),
    "u8": ("U8", [3], bytes([1, 2, 255])),
    "bool": ("BOOL", [3], bytes([1, 0, 1])),
    "none": ("F32", [3, 0], b""),
}


def test_tensors_by_name(run_job: RunCommand, start_method: str, tmp_path: Path) -> None:
    """Every dtype, as numpy has it; BF16, which numpy lacks, as a torch tensor."""
    pytest.importorskip("torch")
    save_tensors(tmp_path / "all.safetensors", TENSORS)
    inputs: dict[str, Any] = {"safetensors": "all.safetensors", "batch": 2}
    run = run_job(job(start_method, "keywords", inputs), scripts=FILES).check()
    first, last = run.values()
    assert first == {
        "f64": ["float64", [2], "[1.0, 2.0]"],
        "i64": ["int64", [2], "[-1, 2]"],
        "u64": ["uint64", [2], "[1, 2]"],
        "f32": ["float32", [2, 2], "[[1.0, 2.0], [3.0, 4.0]]"],
        "i32": ["int32", [2], "[-1, 2]"],
        "u32": ["uint32", [2], "[1, 2]"],
        "f16": ["float16", [2], "[1.0, 2.0]"],
        "bf16": ["torch.bfloat16", [2, 2], "[[1.0, 2.0], [3.0, 4.0]]"],
        "i16": ["int16", [2], "[-1, 2]"],
        "u16": ["uint16", [2], "[1, 2]"],
        "i8": ["int8", [2], "[-1, 2]"],
        "u8": ["uint8", [2], "[1, 2]"],
        "bool": ["bool", [2], "[True, False]"],
        "none": ["float32", [2, 0], "[[], []]"],
    }
    assert last["u64"] == ["uint64", [1], str([2**64 - 1])]
    assert last["bf16"] == ["torch.bfloat16", [1, 2], "[[5.0, 6.0]]"]
    inputs = {"safetensors": "all.safetensors", "tensors": {"x": "f32", "y": "bf16"}}
    run = run_job(job(start_method, "keywords", inputs)).check()
    assert run.values()[1] == {
        "x": ["float32", [2], "[3.0, 4.0]"],
        "y": ["torch.bfloat16", [2], "[3.0, 4.0]"],
    }


# --- without copies, and read-only -------------------------------------------------------------


def test_arrays_are_views_of_the_file(run_job: RunCommand, start_method: str, arrays: Path) -> None:
    """Their memory is the file's, mapped once and read-only."""
    save_tensors(arrays / "all.safetensors", TENSORS)
    inputs: dict[str, Any] = {"npy": {"image": "image.npy", "label": "label.npy"}, "batch": 2}
    run = run_job(job(start_method, "place", inputs), scripts=FILES).check()
    for value in run.values():
        assert value == {
            "image": ["image.npy", "r--s", 1, False],
            "label": ["label.npy", "r--s", 1, False],
        }
    inputs = {"safetensors": "all.safetensors", "tensors": ["f32", "u8"], "batch": 1}
    run = run_job(job(start_method, "place", inputs)).check()
    for value in run.values():
        assert value == {name: ["all.safetensors", "r--s", 1, False] for name in ("f32", "u8")}


@pytest.mark.parametrize(
    "inputs",
    [
        {"npy": "image.npy", "batch": 3},
        {"npy": "image.npy"},
        {"npy": "fortran.npy", "batch": 2},
        {"npy": "parts"},
        {"npy": "parts/*.npy", "batch": 2},
    ],
    ids=str,
)
def test_a_task_cannot_write(
    run_job: RunCommand, start_method: str, arrays: Path, inputs: dict[str, Any]
) -> None:
    before = {file: file.read_bytes() for file in arrays.rglob("*.npy")}
    run = run_job(job(start_method, "write", inputs), scripts=FILES).check()
    assert {value for value in run.values()} == {"assignment destination is read-only"}
    assert before == {file: file.read_bytes() for file in arrays.rglob("*.npy")}


def test_what_a_task_writes_to_bf16_is_its_own(
    run_job: RunCommand, start_method: str, tmp_path: Path
) -> None:
    """torch has no read-only tensors: a second attempt still gets the file's rows."""
    pytest.importorskip("torch")
    script = """
import os


def run(bf16):
    seen = bf16.float().tolist()
    bf16 *= 0
    if os.environ["MPRUN_ATTEMPT"] == "1":
        raise RuntimeError
    return seen
"""
    save_tensors(tmp_path / "all.safetensors", TENSORS)
    before = (tmp_path / "all.safetensors").read_bytes()
    inputs: dict[str, Any] = {"safetensors": "all.safetensors", "tensors": ["bf16"], "batch": 2}
    spec = job(start_method, "run", inputs, processes=1, retries=1)
    run = run_job(spec, scripts={"job.py": script})
    assert run.check().values() == [[[1, 2], [3, 4]], [[5, 6]]]
    assert (tmp_path / "all.safetensors").read_bytes() == before


LARGE = """
import numpy

numpy.load("large.npy", mmap_mode="r")


def memory():
    with open("/proc/self/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["RssAnon"].split()[0])


def touch(rows):
    assert rows[0] == 0 and rows[-1] == 0
    return len(rows)


def read(rows):
    before = memory()
    assert rows.sum() == 0
    return memory() - before
"""


def save_large(path: Path, size: int) -> None:
    """A .npy file of zeros that takes no room on the disk."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({size},), }}".encode()
    header = header.ljust(117) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + bytes([118, 0]) + header)
    os.truncate(path, 128 + size)


def test_a_file_larger_than_the_memory(
    run_job: RunCommand, start_method: str, tmp_path: Path
) -> None:
    size = 4 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        save_large(tmp_path / "large.npy", size)
    except OSError as error:
        pytest.skip(f"no file of {size} bytes can be made here: {error}")
    batch = size // 10
    inputs: dict[str, Any] = {"npy": "large.npy", "batch": batch}
    run = run_job(job(start_method, "touch", inputs), scripts={"job.py": LARGE}).check()
    assert run.values() == [batch] * 10 + [size - 10 * batch] * (size % 10 > 0)


def test_reading_takes_no_memory_of_the_worker(
    run_job: RunCommand, start_method: str, tmp_path: Path
) -> None:
    save_large(tmp_path / "large.npy", 256 << 20)
    inputs: dict[str, Any] = {"npy": "large.npy", "batch": 64 << 20}
    run = run_job(job(start_method, "read", inputs), scripts={"job.py": LARGE}).check()
    assert max(run.values()) < 8 << 10, f"kB of the worker's own for 64 MiB: {run.values()}"


def test_numpy_is_not_imported_before_the_fork(
    run_job: RunCommand, start_method: str, arrays: Path
) -> None:
    spec = job(start_method, "was_imported", {"npy": "image.npy"}, setup="setup")
    assert run_job(spec, scripts=FILES).check().values() == [False] * 7


# --- attempts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["fail_once", "die_once"])
def test_a_second_attempt_gets_the_same_rows(
    run_job: RunCommand, start_method: str, arrays: Path, function: str
) -> None:
    inputs: dict[str, Any] = {"npy": "parts/*.npy", "batch": 2}
    run = run_job(job(start_method, function, inputs, retries=1), scripts=FILES).check()
    assert [value[2] for value in run.values()] == ["[0, 1]", "[2]", "[20, 21]"]


# --- what only shows when a worker starts ------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        ("os.truncate('image.npy', 140)", r"cannot map .*image\.npy: "),
        ("os.remove('image.npy')", r"cannot map .*image\.npy: .*No such file"),
        ("os.replace('fortran.npy', 'image.npy')", r"it had 7 rows, now it has 3"),
        ("sys.modules['numpy'] = None", r"need numpy.*install it"),
    ],
)
def test_files_that_change_before_they_are_mapped(
    run_job: RunCommand, start_method: str, arrays: Path, change: str, pattern: str
) -> None:
    script = f"""
import os
import sys


def run(rows):
    pass


try:
    {change}
except OSError:
    pass
"""
    spec = job(start_method, "run", {"npy": "image.npy"}, processes=1)
    run = run_job(spec, scripts={"job.py": script}).check(3)
    assert re.search(pattern, run.stderr), run


def test_bf16_without_torch(run_job: RunCommand, start_method: str, tmp_path: Path) -> None:
    save_tensors(tmp_path / "all.safetensors", TENSORS)
    script = "import sys\n\nsys.modules['torch'] = None\n\n\ndef run(bf16):\n    pass\n"
    spec = job(start_method, "run", {"safetensors": "all.safetensors", "tensors": ["bf16"]})
    run = run_job(spec, scripts={"job.py": script}).check(3)
    assert re.search(r"'bf16' of .*all\.safetensors is BF16.*install it, or save", run.stderr), run
