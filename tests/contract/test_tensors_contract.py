"""The tensors that tasks return: gathered, told of in the results, and never believed unseen."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy
import pytest

from harness import MountDisk, Run, RunCommand

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

# The same with torch; the script has no numpy of its own.
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


def load(run: Run, name: str) -> numpy.ndarray:
    """A gathered file, as anybody would read it."""
    return numpy.load(run.run_dir / "tensors" / f"{name}.npy", allow_pickle=False)


def load_safetensors(path: Path) -> dict[str, tuple[str, list[int], bytes]]:
    """The tensors of a .safetensors file: (dtype, shape, bytes). Checks what its readers insist on."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    assert raw[8:9] == b"{" and length % 8 == 0
    places = sorted(entry["data_offsets"] for entry in header.values())
    assert [begin for begin, _ in places] == [0, *(end for _, end in places[:-1])]
    assert places[-1][1] == len(data)
    return {
        name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
        for name, entry in header.items()
    }


def equal(found: numpy.ndarray, wanted: numpy.ndarray) -> bool:
    """Whether two arrays agree in dtype, shape and every value, NaN and NaT included."""
    wanted = wanted.astype(wanted.dtype.newbyteorder("="))
    same = found.dtype == wanted.dtype and found.shape == wanted.shape
    return same and numpy.ascontiguousarray(found).tobytes() == wanted.tobytes()


def spec(function: str, tasks: int = 4, **more: Any) -> dict[str, Any]:
    """A job of two workers."""
    job = {"script": "job.py", "function": function, "processes": 2, "inputs": {"range": tasks}}
    return {**job, **more}


def tensors_of(run: Run) -> dict[str, dict[str, Any]]:
    """What summary.json says of the tensors, by file."""
    return {entry["file"]: entry for entry in run.summary()["tensors"]}


def failures(run: Run) -> list[str]:
    """The messages of the tasks that failed."""
    return [result["error"]["message"] for result in run.results() if result["status"] == "failed"]


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
    for number, value in enumerate(run.values()):  # .npy files know no bfloat16
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
    """What speaks DLPack is read with the numpy that the script has imported."""
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
    """Bit for bit what one process gives; the last batch is short; what is none has a row a task."""
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


# Of task 2 the first attempt (or every one) dies when it has written half of its row.
TORN = """
import os
import signal

import numpy

write = os.pwrite
DEADLY = {attempts!r}


def torn(fd, data, offset):
    deadly = os.environ.get("MPRUN_TASK") == "2" and os.environ["MPRUN_ATTEMPT"] in DEADLY
    if not deadly or offset == 0:
        return write(fd, data, offset)
    write(fd, data[: len(data) // 2], offset)
    os.kill(os.getpid(), signal.SIGKILL)


os.pwrite = torn


def evaluate(number):
    return numpy.full(1000, number + 1)
"""


def test_a_worker_killed_while_it_writes(run_job: RunCommand, start_method: str) -> None:
    """Tried again, the task writes its own row anew; a row without a result is zeros in the end."""
    job = spec("evaluate", start_method=start_method)
    run = run_job(job, scripts={"job.py": TORN.format(attempts="1")}).check()
    wanted = (numpy.arange(4) + 1)[:, None].repeat(1000, 1)
    assert equal(load(run, "result"), wanted)
    assert run.results()[2]["attempt"] == 2
    run = run_job(job, scripts={"job.py": TORN.format(attempts="12")}).check(1)
    wanted[2] = 0
    assert equal(load(run, "result"), wanted)
    entry = tensors_of(run)["tensors/result.npy"]
    assert (entry["rows_done"], entry["rows_missing"]) == (3, 1)


def test_what_does_not_fit_has_a_file_of_its_own(run_job: RunCommand, start_method: str) -> None:
    """Of the tensors of a task those that fit are still gathered."""
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


REFUSED = """
import numpy


class OnAccelerator:
    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, stream=None):
        raise AssertionError("nobody may ask")


class Device:
    type = "cuda"

    def __str__(self):
        return "cuda:0"


def torch_tensor():
    import torch

    class Cuda(torch.Tensor):
        device = Device()

    return torch.zeros(2).as_subclass(Cuda)


def sparse():
    import torch

    return torch.eye(3).to_sparse()


CASES = {
    "objects": lambda: numpy.array([{}, None]),
    "records": lambda: numpy.zeros(2, "i4,f4"),
    "masked": lambda: numpy.ma.array([1, 2], mask=[0, 1]),
    "accelerator": OnAccelerator,
    "cuda": torch_tensor,
    "sparse": sparse,
    "deep": lambda: {"a": {"b": numpy.zeros(2)}},
    "both": lambda: {"a": numpy.zeros(1), "b": [numpy.zeros(2)]},
    "slash": lambda: {"../a": numpy.zeros(2)},
    "hidden": lambda: {".a": numpy.zeros(2)},
    "long": lambda: {"a" * 201: numpy.zeros(2)},
    "number": lambda: {1: numpy.zeros(2)},
    "many": lambda: [numpy.zeros(1)] * 1001,
    "no bytes": lambda: numpy.zeros(2, "S0").astype("V0"),
}


def evaluate(name):
    return CASES[name]()
"""

REASONS = {
    "objects": "dtype object",
    "records": "for each field",
    "masked": ".filled(",
    "accelerator": ".cpu()",
    "cuda": "on the device cuda:0: return it with .cpu()",
    "sparse": ".to_dense()",
    "deep": "inside of a member",
    "both": "inside of a member",
    "slash": "no plain file name",
    "hidden": "no plain file name",
    "long": "no plain file name",
    "number": "name it by a string",
    "many": "at most 1000",
    "no bytes": "dtype",
}


def test_what_cannot_be_kept_is_refused(run_job: RunCommand) -> None:
    job = spec("evaluate", inputs={"items": list(REASONS)})
    run = run_job(job, scripts={"job.py": REFUSED}).check(1)
    for (name, reason), result in zip(REASONS.items(), run.results()):
        assert result["status"] == "failed", name
        assert reason in result["error"]["message"], name
        assert result["error"]["type"] == "TypeError"
        assert result["error"]["traceback"] is None
    assert run.summary()["tensors"] == []


def test_text_of_other_widths_fits_nowhere(run_job: RunCommand) -> None:
    script = """
import numpy


def evaluate(number):
    return numpy.array(["x" * (number + 1)])
"""
    run = run_job(spec("evaluate", processes=1), scripts={"job.py": script}).check(1)
    assert len(failures(run)) == 3
    assert "return the same shape and dtype from every task" in failures(run)[0]


@pytest.mark.parametrize(
    "claim", ["name, begin + 1, end + 1", "name, begin, end + 1", "'other', begin, end"]
)
def test_a_false_claim_fails_the_task(run_job: RunCommand, claim: str) -> None:
    script = f"""
import numpy
import mprun.tensor_files

honest = mprun.tensor_files.claim


def lie(kind, name, begin, end):
    return honest(kind, {claim}) if begin == 2 else honest(kind, name, begin, end)


mprun.tensor_files.claim = lie


def evaluate(number):
    return numpy.full(2, number)
"""
    run = run_job(spec("evaluate"), scripts={"job.py": script}).check(1)
    assert [result["status"] for result in run.results()] == ["ok", "ok", "failed", "ok"]
    assert run.results()[2]["error"]["type"] == "TensorError"
    assert tensors_of(run)["tensors/result.npy"]["rows_missing"] == 1
    assert (load(run, "result")[2] == 0).all()


def test_a_name_that_is_no_text_harms_nobody(run_job: RunCommand) -> None:
    """A worker that means harm claims a file whose name is no UTF-8, which JSON cannot say."""
    script = r"""
import os
import struct

import mprun.tensor_files
import numpy


def lie(kind, name, begin, end):
    folder = os.environb[b"MPRUN_RUN_DIR"] + b"/tensors/"
    os.link(folder + b"result.npy", folder + b"\xff.npy")
    return struct.pack("=QQII", begin, end, kind, 1) + b"\xff"


mprun.tensor_files.claim = lie


def evaluate(number):
    return numpy.zeros(3)
"""
    run = run_job(spec("evaluate", 1), "--summary-json", scripts={"job.py": script}).check()
    [told] = json.loads(run.stdout)["tensors"]
    assert (told["name"], told["rows_done"]) == ("\ufffd", 1)
    assert tensors_of(run)["tensors/\ufffd.npy"] == told


def test_a_full_disk(run_job: RunCommand, mount_disk: MountDisk) -> None:
    """There is no room for all rows: that is told by the first task, and the results are kept."""
    script = """
import numpy


def evaluate(number):
    return numpy.zeros(100_000, "u1") if number else "small"
"""
    disk = mount_disk("1m")
    run = run_job(spec("evaluate", 20), "--output", disk / "run", scripts={"job.py": script})
    run.check(1)
    assert run.results()[0]["value"] == "small"
    assert len(failures(run)) == 19
    reason = "No space left on device; all of it takes 2004096 bytes"
    assert all(reason in text for text in failures(run))
    assert not list((disk / "run/tensors").iterdir())


def test_workers_that_start_together_reserve_the_space_once(
    run_job: RunCommand, mount_disk: MountDisk
) -> None:
    """Two files of that size would not fit."""
    script = """
import numpy


def evaluate(number):
    return numpy.full(100_000, number, "u1")
"""
    disk = mount_disk("3m")
    job = spec("evaluate", 20, processes=4)
    run = run_job(job, "--output", disk / "run", scripts={"job.py": script}).check()
    assert equal(load(run, "result"), numpy.arange(20, dtype="u1")[:, None].repeat(100_000, 1))


@pytest.mark.parametrize("case", ["taken", "unsupported"])
def test_a_file_is_given_its_name_once(run_job: RunCommand, case: str) -> None:
    """Somebody else's file of that name is used; without hard links the file still gets its name."""
    script = f"""
import errno
import os
import shutil

import numpy

link = os.link


def strange_link(temporary, path):
    if {case!r} == "unsupported":
        raise OSError(errno.EPERM, "no links here")
    shutil.copy(temporary, path)
    link(temporary, path)


os.link = strange_link


def evaluate(number):
    return numpy.full(2, number)
"""
    run = run_job(spec("evaluate"), scripts={"job.py": script}).check()
    assert equal(load(run, "result"), numpy.arange(4)[:, None].repeat(2, 1))
    assert os.listdir(run.run_dir / "tensors") == ["result.npy"]


def test_streamed_inputs(run_job: RunCommand, start_method: str) -> None:
    """Nobody knows how many tasks there will be; the header is right in the end, with failed ones."""
    script = """
import numpy


def evaluate(line):
    return numpy.full(3, int(line))
"""
    job = spec("evaluate", start_method=start_method, inputs={"lines": "-"})
    reader, writer = os.pipe()  # of a file the number would be known
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
