"""Jobs whose tasks return tensors, and their outputs: for the tests of tensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy

from harness import Run


def load(run: Run, name: str) -> numpy.ndarray:
    """A gathered file, as another program reads it."""
    return numpy.load(run.run_dir / "tensors" / f"{name}.npy", allow_pickle=False)


def load_safetensors(path: Path) -> dict[str, tuple[str, list[int], bytes]]:
    """The tensors of a .safetensors file: (dtype, shape, bytes). As strict as its readers."""
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
    """The entries of summary.json for the tensors, by file."""
    return {entry["file"]: entry for entry in run.summary()["tensors"]}


def failures(run: Run) -> list[str]:
    """The messages of the tasks that failed."""
    return [result["error"]["message"] for result in run.results() if result["status"] == "failed"]


def saved(run: Run, name: str) -> numpy.ndarray:
    """A saved shared tensor, read as by any other program."""
    return numpy.load(run.run_dir / "shared" / f"{name}.npy", allow_pickle=False)


def shared_of(run: Run) -> dict[str, dict[str, Any]]:
    """The entries of summary.json for the shared tensors, by name."""
    return {entry["name"]: entry for entry in run.summary()["shared"]}


def shared_job(**more: Any) -> dict[str, Any]:
    """Six tasks on two workers, for shared tensors."""
    return {"script": "job.py:fill", "processes": 2, "inputs": {"range": 6}, **more}
