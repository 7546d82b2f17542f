"""The tensors of a run, read from the files that mprun keeps them in (tensor_files.py writes those)."""
from __future__ import annotations

import json
import mmap
import os
import struct
from typing import Any

#: Smaller ones are read, larger ones mapped: there may be only so many mappings.
SMALLEST_MAPPING = 1024 * 1024


class TensorReader:
    """Reads what values say of tensors, while the run goes on or after it."""

    def __init__(self, run_dir: str) -> None:
        self.run_dir = run_dir
        self.headers: dict[str, int] = {}  # of .npy files: bytes before the first row

    def buffer(self, reference: dict[str, Any], size: int) -> Any:
        """The bytes of one tensor, in memory that may be written to and changes no file: {"tensor": FILE, "row": N} or
        {"tensor": FILE, "name": NAME}."""
        path = os.path.join(self.run_dir, reference["tensor"])
        with open(path, "rb", buffering=0) as file:
            if "row" in reference:
                begin = self.header_bytes(path, file.fileno()) + reference["row"] * size
            else:
                (length,) = struct.unpack("<Q", os.pread(file.fileno(), 8, 0))
                entry = json.loads(os.pread(file.fileno(), length, 8))[reference["name"]]
                begin = 8 + length + entry["data_offsets"][0]
            if size < SMALLEST_MAPPING:
                data = bytearray(os.pread(file.fileno(), size, begin))
            else:
                page = begin - begin % mmap.ALLOCATIONGRANULARITY
                memory = mmap.mmap(file.fileno(), begin - page + size, access=mmap.ACCESS_COPY, offset=page)
                return memoryview(memory)[begin - page :]
        if len(data) != size:
            raise EOFError(f"{path} ends before the tensor does")
        return data

    def header_bytes(self, path: str, fd: int) -> int:
        if path not in self.headers:
            self.headers[path] = 10 + struct.unpack("<H", os.pread(fd, 2, 8))[0]
        return self.headers[path]
