"""The tensors of a run, read from the files that mprun keeps them in (tensor_files.py writes those)."""
from __future__ import annotations

import json
import math
import mmap
import os
import struct
from typing import Any

from mprun.tensors import NOT_IN_NPY, SAFETENSORS_DTYPES

#: Smaller ones are read, larger ones mapped: there may be only so many mappings.
SMALLEST_MAPPING = 1024 * 1024


def is_reference(value: Any) -> bool:
    """Whether a member of a value that has tensors is one of them."""
    return isinstance(value, dict) and isinstance(value.get("tensor"), str)


def safetensors_entry(fd: int, name: str) -> dict[str, Any]:
    """What the header of a .safetensors file says of a tensor, with where its bytes begin and how many there are."""
    (length,) = struct.unpack("<Q", os.pread(fd, 8, 0))
    entry: dict[str, Any] = json.loads(os.pread(fd, length, 8))[name]
    begin, end = entry["data_offsets"]
    return {**entry, "begin": 8 + length + begin, "bytes": end - begin}


class TensorReader:
    """Reads what values say of tensors, while the run goes on or after it."""

    def __init__(self, run_dir: str) -> None:
        self.run_dir = run_dir
        self.headers: dict[str, int] = {}  # of .npy files: bytes before the first row

    def buffer(self, reference: dict[str, Any], size: int) -> Any:
        """The bytes of one tensor, in memory that may be written to and changes no file: {"tensor": FILE, "row": N} or
        {"tensor": FILE, "name": NAME}."""
        path = os.path.join(self.run_dir, reference["tensor"])
        if "shape" in reference:
            return self.padded(path, reference)
        with open(path, "rb", buffering=0) as file:
            if "row" in reference:
                begin = self.header_bytes(path, file.fileno()) + reference["row"] * size
            else:
                begin = safetensors_entry(file.fileno(), reference["name"])["begin"]
            if size < SMALLEST_MAPPING:
                data = bytearray(os.pread(file.fileno(), size, begin))
            else:
                page = begin - begin % mmap.ALLOCATIONGRANULARITY
                memory = mmap.mmap(file.fileno(), begin - page + size, access=mmap.ACCESS_COPY, offset=page)
                return memoryview(memory)[begin - page :]
        if len(data) != size:
            raise EOFError(f"{path} ends before the tensor does")
        return data

    def padded(self, path: str, reference: dict[str, Any]) -> bytearray:
        """The bytes of a tensor that stands at the beginning of a larger row."""
        from numpy import frombuffer
        from numpy.lib import format as npy

        with open(path, "rb") as file:
            npy.read_magic(file)
            shape, _, dtype = npy.read_array_header_1_0(file)  # how many rows it has is not known yet
            size = math.prod(shape[1:]) * dtype.itemsize
            row = os.pread(file.fileno(), size, file.tell() + reference["row"] * size)
        found = frombuffer(row, dtype).reshape(shape[1:])
        return bytearray(found[tuple(slice(length) for length in reference["shape"])].tobytes())

    def restore(self, value: Any) -> Any:
        """A task's value with numpy arrays in the place of references, torch tensors for dtypes numpy does not have."""
        if is_reference(value):
            return self.array(value)
        if isinstance(value, dict):
            return {key: self.array(member) if is_reference(member) else member for key, member in value.items()}
        return [self.array(member) if is_reference(member) else member for member in value]

    def array(self, reference: dict[str, Any]) -> Any:
        import numpy

        path = os.path.join(self.run_dir, reference["tensor"])
        if "name" in reference:
            return self.of_safetensors(path, reference["name"])
        rows = numpy.load(path, mmap_mode="c", allow_pickle=False)
        found = rows[reference["row"]] if "row" in reference else rows[slice(*reference["rows"])]
        if "shape" in reference:  # it stands at the beginning of a larger row
            found = found[tuple(slice(length) for length in reference["shape"])]
        return found

    def of_safetensors(self, path: str, name: str) -> Any:
        import numpy

        with open(path, "rb", buffering=0) as file:
            entry = safetensors_entry(file.fileno(), name)
        data = self.buffer({"tensor": path, "name": name}, entry["bytes"])
        dtypes = {theirs: npy for npy, theirs in SAFETENSORS_DTYPES.items()}
        if entry["dtype"] in dtypes:
            return numpy.frombuffer(data, dtypes[entry["dtype"]]).reshape(entry["shape"])
        import torch

        torch_dtype = getattr(torch, {theirs: own for own, theirs in NOT_IN_NPY.items()}[entry["dtype"]])
        if not data:  # torch.frombuffer refuses it
            return torch.empty(entry["shape"], dtype=torch_dtype)
        return torch.frombuffer(data, dtype=torch_dtype).reshape(entry["shape"])

    def header_bytes(self, path: str, fd: int) -> int:
        if path not in self.headers:
            self.headers[path] = 10 + struct.unpack("<H", os.pread(fd, 2, 8))[0]
        return self.headers[path]
