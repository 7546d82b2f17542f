"""The tensors that tasks return: gathered in files, and described in the results."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy
import pytest

from harness import RunCommand
from tensor_jobs import equal, failures, load, load_safetensors, spec, tensors_of

# Arrays of every kind, from a task's number; the tests make the same ones to compare with.
ARRAYS = """
import numpy


class Subclass(numpy.ndarray):
    pass


def arrays(number):
    grid = numpy.arange(12).reshape(3, 4) + number
    frozen = numpy.array([number, 2.5])
    frozen.flags.writeable = False
    return {
        "float32": grid.astype("f4") / 7,
        "float16": grid.astype("f2") / 7,
        "int8": grid.astype("i1"),
        "bool": grid % 3 == 0,
        "complex64": (grid * (1 + 2j)).astype("c8"),
        "complex128": grid / (1 + 3j),
        "big-endian": grid.astype(">i4"),
        "strided": grid[::2, ::-1],
        "fortran": numpy.asfortranarray(grid),
        "transposed": grid.T,
        "empty": numpy.zeros((0, 3)),
        "scalar": numpy.array(number),
        "frozen": frozen,
        "subclass": grid.view(Subclass),
        "text": numpy.array(["a", "b%d" % number]),
        "bytes": numpy.array([b"xy", b"z%d" % number]),
        "dates": numpy.array(["2024-01-01", "NaT"], "M8[D]") + number,
        "blank name \\u00e9": grid[0],
    }


def evaluate(number):
    return {"number": number, **arrays(number)}
"""

# The same with torch; the script does not import numpy itself.
TENSORS = """
import torch


def evaluate(number):
    grid = torch.arange(6.0).reshape(2, 3) + number
    pairs = torch.complex(grid, grid)
    return {
        "number": number,
        "grad": (grid.requires_grad_() / 7),
        "leaf": torch.nn.Parameter(grid.detach().t()),
        "half": grid.detach().half(),
        "bool": grid > 3,
        "conjugate": pairs.conj(),
        "imaginary": pairs.conj().imag,
        "scalar": torch.tensor(number),
        "empty": torch.zeros(0, 2),
        "brain": grid.detach().bfloat16(),
    }
"""


def test_numpy_arrays_of_every_kind(run_job: RunCommand, start_method: str) -> None:
    run = run_job(spec("evaluate", start_method=start_method), scripts={"job.py": ARRAYS}).check()
    script: dict[str, Any] = {}
    exec(ARRAYS, script)
    wanted = [script["arrays"](number) for number in range(4)]
    for name in wanted[0]:
        assert equal(load(run, name), numpy.stack([arrays[name] for arrays in wanted])), name
        entry = tensors_of(run)[f"tensors/{name}.npy"]
        assert (entry["name"], entry["rows_done"], entry["rows_missing"]) == (name, 4, 0)
        assert entry["shape"] == list(load(run, name).shape)
    for number, value in enumerate(run.values()):
        references = {name: {"tensor": f"tensors/{name}.npy", "row": number} for name in wanted[0]}
        assert value == {"number": number, **references}
    assert not list((run.run_dir / "tensors").glob(".*"))


def test_torch_tensors_of_every_kind(run_job: RunCommand, start_method: str) -> None:
    run = run_job(spec("evaluate", start_method=start_method), scripts={"job.py": TENSORS}).check()
    grids = numpy.arange(6, dtype="f4").reshape(2, 3) + numpy.arange(4, dtype="f4")[:, None, None]
    assert equal(load(run, "grad"), grids / numpy.float32(7))
    assert equal(load(run, "leaf"), grids.transpose(0, 2, 1))
    assert equal(load(run, "half"), grids.astype("f2"))
    assert equal(load(run, "bool"), grids > 3)
    assert equal(load(run, "conjugate"), (grids + 1j * grids).astype("c8").conj())
    assert equal(load(run, "imaginary"), -grids)
    assert equal(load(run, "scalar"), numpy.arange(4))
    assert equal(load(run, "empty"), numpy.zeros((4, 0, 2), "f4"))
    for number, value in enumerate(run.values()):  # .npy files have no bfloat16
        file = f"tensors/{number}.safetensors"
        assert value["brain"] == {"tensor": file, "name": "brain"}
        dtype, shape, data = load_safetensors(run.run_dir / file)["brain"]
        words = (numpy.frombuffer(data, "u2").astype("u4") << 16).view("f4")
        assert (dtype, shape) == ("BF16", [2, 3])
        assert (words.reshape(2, 3) == grids[number]).all()
    assert tensors_of(run)["tensors/TASK.safetensors"]["tasks"] == 4


def test_tuples_and_single_tensors(run_job: RunCommand, start_method: str) -> None:
    script = """
import numpy


def pair(number):
    return numpy.full(2, number), {"note": [number]}, numpy.float32([number])


def one(number):
    return numpy.full((2, 2), number)
"""
    scripts = {"job.py": script}
    run = run_job(spec("pair", start_method=start_method), scripts=scripts).check()
    first, second = {"tensor": "tensors/0.npy", "row": 3}, {"tensor": "tensors/2.npy", "row": 3}
    assert run.values()[3] == [first, {"note": [3]}, second]
    assert equal(load(run, "0"), numpy.arange(4)[:, None].repeat(2, 1))
    assert equal(load(run, "2"), numpy.arange(4, dtype="f4")[:, None])
    run = run_job(spec("one", start_method=start_method), scripts=scripts).check()
    assert run.values()[2] == {"tensor": "tensors/result.npy", "row": 2}
    assert equal(load(run, "result"), numpy.arange(4)[:, None, None].repeat(2, 1).repeat(2, 2))


# A task's row in every form of memory, some of another dtype. Each form follows one that looks like it.
ROWS = """
import array

import numpy
import torch


def evaluate(number):
    row = numpy.arange(6.0).reshape(2, 3) + number
    tensor = torch.from_numpy(row)
    forms = [
        row, row + 0, numpy.asfortranarray(row), row.astype(">f8"), row.astype(">f8"), tensor, tensor + 0, tensor.t().t(),
        (tensor + 0j).conj().real, tensor.clone().requires_grad_(), row + 0, row.astype("f4"), row.astype("i8"), row + 0,
    ]
    return forms[number % len(forms)]


def flat(number):
    return array.array("d", [number, 2 * number])
"""


def test_rows_that_look_like_earlier_ones(run_job: RunCommand, start_method: str) -> None:
    job = spec("evaluate", start_method=start_method, processes=1, inputs={"range": 56}, chunk_size=8)
    run = run_job(job, scripts={"job.py": ROWS}).check()
    rows = load(run, "result")
    for number, value in enumerate(run.values()):
        wanted = numpy.arange(6.0).reshape(2, 3) + number
        if number % 14 in (11, 12):  # of another dtype
            assert value == {"tensor": f"tensors/{number}.safetensors", "name": "result"}
            wanted[:] = 0
        else:
            assert value == {"tensor": "tensors/result.npy", "row": number}
        assert equal(rows[number], wanted), number
    run = run_job({**job, "function": "flat"}, scripts={"job.py": ROWS}).check()
    assert equal(load(run, "result"), numpy.arange(56.0)[:, None] * [1, 2])


# A task closes the descriptor that the worker keeps, and opens another file in its place.
CLOSES = """
import os

import numpy


def files():
    for name in os.listdir("/proc/self/fd"):
        try:
            yield int(name), os.fstat(int(name))
        except OSError:
            pass


def evaluate(number):
    if number == 5:
        gathered = os.stat("out/tensors/result.npy")
        (kept,) = [fd for fd, status in files() if os.path.samestat(status, gathered)]
        own = os.open("own.bin", os.O_RDWR | os.O_CREAT)
        os.dup2(own, kept)
    return numpy.full(3, number)
"""


def test_a_task_closes_the_file_of_its_rows(run_job: RunCommand, start_method: str) -> None:
    job = spec("evaluate", start_method=start_method, processes=1, inputs={"range": 12}, chunk_size=4)
    run = run_job(job, scripts={"job.py": CLOSES}).check()
    assert equal(load(run, "result"), numpy.repeat(numpy.arange(12), 3).reshape(12, 3))
    assert (run.run_dir.parent / "own.bin").read_bytes() == b""


def test_buffers_need_no_numpy(run_job: RunCommand) -> None:
    script = """
import array
import ctypes
import sys


def evaluate(number):
    assert "numpy" not in sys.modules
    return {
        "array": array.array("d", [number, 0.5]),
        "ctypes": (ctypes.c_int16 * 2)(number, -1),
        "table": memoryview(bytes(range(6))).cast("B", (2, 3)),
    }
"""
    run = run_job(spec("evaluate"), scripts={"job.py": script}).check()
    assert equal(load(run, "array"), numpy.array([[number, 0.5] for number in range(4)]))
    assert equal(load(run, "ctypes"), numpy.array([[number, -1] for number in range(4)], "i2"))
    assert equal(load(run, "table"), numpy.arange(6, dtype="u1").reshape(1, 2, 3).repeat(4, 0))


def test_arrays_of_other_libraries(run_job: RunCommand) -> None:
    """An object that supports DLPack is read with the numpy that the script has imported."""
    script = """
class Array:
    def __init__(self, values):
        self.values = values

    def __dlpack__(self, stream=None):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


def evaluate(number):
    import numpy

    return Array(numpy.arange(6.0).reshape(2, 3).T + number)


def without_numpy(number):
    return Array(memoryview(b""))
"""
    run = run_job(spec("evaluate"), scripts={"job.py": script}).check()
    base = numpy.arange(6.0).reshape(2, 3).T
    assert equal(load(run, "result"), numpy.stack([base + number for number in range(4)]))
    run = run_job(spec("without_numpy"), scripts={"job.py": script}).check(1)
    assert all("only where numpy is imported" in text for text in failures(run))


def test_batches_are_concatenated(run_job: RunCommand, start_method: str, tmp_path: Path) -> None:
    """Bit for bit what one process gives; the last one is short; what is not a batch has a row per task."""
    script = """
import numpy


def evaluate(images):
    return {"scores": numpy.sqrt(images) @ numpy.ones((3, 2), "f4"), "mean": images.mean(axis=0)}
"""
    images = numpy.random.default_rng(7).random((11, 3), "f4")
    numpy.save(tmp_path / "images.npy", images)
    job = spec("evaluate", start_method=start_method, inputs={"npy": "images.npy", "batch": 4})
    run = run_job(job, scripts={"job.py": script}).check()
    alone: dict[str, Any] = {}
    exec(script, alone)
    batches = [alone["evaluate"](images[begin : begin + 4]) for begin in range(0, 11, 4)]
    assert equal(load(run, "scores"), numpy.concatenate([batch["scores"] for batch in batches]))
    assert equal(load(run, "mean"), numpy.stack([batch["mean"] for batch in batches]))
    assert run.values()[2] == {
        "scores": {"tensor": "tensors/scores.npy", "rows": [8, 11]},
        "mean": {"tensor": "tensors/mean.npy", "row": 2},
    }


def test_what_does_not_fit_gets_a_separate_file(run_job: RunCommand, start_method: str) -> None:
    """The tensors of a task that fit are still gathered."""
    script = """
import numpy


def evaluate(number):
    fits = numpy.full(2, number)
    if number > 1:
        boxes = numpy.full((number, 2), number, "f4")
        return {"fits": fits, "boxes": boxes, "odd": numpy.int8([1])}
    return {"fits": fits, "boxes": numpy.zeros((1, 2), "f4")}
"""
    job = spec("evaluate", 6, start_method=start_method)
    run = run_job(job, scripts={"job.py": script}).check()
    assert equal(load(run, "fits"), numpy.arange(6)[:, None].repeat(2, 1))
    gathered = 0
    for number, value in enumerate(run.values()):
        if value["boxes"] == {"tensor": "tensors/boxes.npy", "row": number}:
            gathered += 1
            continue
        assert value["boxes"] == {"tensor": f"tensors/{number}.safetensors", "name": "boxes"}
        dtype, shape, data = load_safetensors(run.run_dir / value["boxes"]["tensor"])["boxes"]
        shape_wanted = [max(number, 1), 2] if number > 1 else [1, 2]
        assert (dtype, shape) == ("F32", shape_wanted)
        wanted = number if number > 1 else 0
        assert (numpy.frombuffer(data, "f4").reshape(shape) == wanted).all()
    entry = tensors_of(run)["tensors/boxes.npy"]
    assert (entry["rows_done"], entry["rows_missing"]) == (gathered, 6 - gathered)
    assert gathered >= 1


PADDED = """
import numpy


def evaluate(number):
    return {
        "tokens": numpy.arange(number, dtype="i4"),
        "boxes": numpy.full((number, 2), number, "f4"),
        "mask": numpy.ones(number, bool),
    }


def batches(rows):
    length = int(rows.max())
    return rows[:, None] * numpy.ones(length)
"""


def test_other_shapes_are_padded_when_asked_for(run_job: RunCommand, start_method: str) -> None:
    """Each row begins with its tensor; one that is larger than the row has a file of its own."""
    pad = {
        "tokens": {"shape": [4], "fill": -100},
        "boxes": {"shape": [5, 3], "fill": "NaN"},
        "mask": [5],
    }
    job = spec("evaluate", 6, start_method=start_method, output={"pad": pad})
    run = run_job(job, scripts={"job.py": PADDED}).check()
    tokens = numpy.full((6, 4), -100, "i4")
    boxes = numpy.full((6, 5, 3), numpy.nan, "f4")
    mask = numpy.zeros((6, 5), bool)
    for number in range(6):
        tokens[number, :number] = range(number) if number < 5 else 0
        boxes[number, :number, :2] = number
        mask[number, :number] = True
    tokens[5] = 0  # it is in its own file
    assert equal(load(run, "tokens"), tokens)
    assert equal(load(run, "boxes"), boxes)
    assert equal(load(run, "mask"), mask)
    value = run.values()[3]
    assert value["boxes"] == {"tensor": "tensors/boxes.npy", "row": 3, "shape": [3, 2]}
    assert run.values()[5]["tokens"] == {"tensor": "tensors/5.safetensors", "name": "tokens"}
    assert tensors_of(run)["tensors/tokens.npy"]["rows_missing"] == 1


def test_batches_are_padded(run_job: RunCommand, tmp_path: Path) -> None:
    numpy.save(tmp_path / "rows.npy", numpy.arange(1.0, 8.0))
    inputs = {"npy": "rows.npy", "batch": 3}
    job = spec("batches", inputs=inputs, output={"pad": {"result": [7]}})
    run = run_job(job, scripts={"job.py": PADDED}).check()
    wanted = numpy.zeros((7, 7))
    for row in range(7):
        wanted[row, : min(row // 3 * 3 + 3, 7)] = row + 1
    assert equal(load(run, "result"), wanted)
    assert run.values()[2] == {"tensor": "tensors/result.npy", "rows": [6, 7], "shape": [1, 7]}


@pytest.mark.parametrize(
    ("fill", "dtype", "holds"),
    [(300, "u1", False), (-1, "u1", False), (0.5, "i8", False), (2, "?", False), ("NaN", "i2", False)]
    + [(1e39, "f4", False), (0, "U3", False), (0.1, "f4", True), ("-Infinity", "f2", True), (1, "?", True)],
)
def test_a_value_outside_the_dtype_cannot_fill(
    run_job: RunCommand, fill: Any, dtype: str, holds: bool
) -> None:
    script = f"import numpy\n\n\ndef evaluate(number):\n    return numpy.zeros(1, {dtype!r})\n"
    output = {"pad": {"result": {"shape": [2], "fill": fill}}}
    run = run_job(spec("evaluate", output=output), scripts={"job.py": script}).check(0 if holds else 1)
    if holds:
        assert equal(load(run, "result")[1, 1:], numpy.array([float(fill)], dtype))
    else:
        assert all('"output.pad" fills with' in text for text in failures(run))


def test_safetensors_when_asked_for(run_job: RunCommand, start_method: str) -> None:
    script = """
import numpy


def evaluate(number):
    return {"wide": numpy.full((2, 3), number, "f8"), "flag": numpy.array([True]), "number": number}
"""
    job = spec("evaluate", start_method=start_method, output={"tensors": "safetensors"})
    run = run_job(job, scripts={"job.py": script}).check()
    for number, value in enumerate(run.values()):
        file = f"tensors/{number}.safetensors"
        wide, flag = ({"tensor": file, "name": name} for name in ("wide", "flag"))
        assert value == {"wide": wide, "flag": flag, "number": number}
        kept = load_safetensors(run.run_dir / file)
        assert kept["flag"] == ("BOOL", [1], b"\1")
        assert kept["wide"] == ("F64", [2, 3], numpy.full(6, number, "f8").tobytes())
    assert run.summary()["tensors"] == [{"file": "tensors/TASK.safetensors", "tasks": 4}]
    assert not list((run.run_dir / "tensors").glob("*.npy"))


def test_streamed_inputs(run_job: RunCommand, start_method: str) -> None:
    """The number of tasks is not known; the header is still right in the end."""
    script = """
import numpy


def evaluate(line):
    return numpy.full(3, int(line))
"""
    job = spec("evaluate", start_method=start_method, inputs={"lines": "-"})
    reader, writer = os.pipe()  # with a file the number would be known
    os.write(writer, b"".join(b"%d\n" % number for number in range(50)) + b"none\n")
    os.close(writer)
    run = run_job(job, scripts={"job.py": script}, stdin=reader).check(1)
    wanted = numpy.append(numpy.arange(50), 0)[:, None].repeat(3, 1)
    assert equal(load(run, "result"), wanted)
    entry = tensors_of(run)["tensors/result.npy"]
    assert (entry["shape"], entry["rows_done"], entry["rows_missing"]) == ([51, 3], 50, 1)


def test_ranks(run_job: RunCommand, start_method: str) -> None:
    script = """
import mprun
import numpy

mprun.result(numpy.zeros(2))
mprun.result({"weights": numpy.full(2, mprun.rank()), "rank": mprun.rank()})
"""
    job = {"script": "job.py", "processes": 3, "start_method": start_method}
    run = run_job(job, scripts={"job.py": script}).check()
    assert equal(load(run, "weights"), numpy.arange(3)[:, None].repeat(2, 1))
    for rank, value in enumerate(run.values()):
        assert value == {"weights": {"tensor": "tensors/weights.npy", "row": rank}, "rank": rank}
    assert list(tensors_of(run)) == ["tensors/weights.npy"]


def test_files_are_as_readable_as_the_results(run_job: RunCommand) -> None:
    script = "import numpy\n\n\ndef evaluate(number):\n    return numpy.zeros(2)\n"
    run = run_job(spec("evaluate"), scripts={"job.py": script}).check()
    wanted = (run.run_dir / "results.jsonl").stat().st_mode
    assert (run.run_dir / "tensors/result.npy").stat().st_mode == wanted
