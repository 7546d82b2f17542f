"""The tensors that all processes of a job share: `mprun.shared`, in workers, ranks and any Python below them.

MPRUN_SHARED lists the tensors and their places in one memory file. Each process maps the file once, when it first uses
a tensor; a forked child keeps the mapping of its parent.
"""
from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

TYPE_CHECKING = False  # as typing has it, whose import takes a millisecond or two
if TYPE_CHECKING:
    from typing import Any

_VARIABLE = "MPRUN_SHARED"
_MOST_SHOWN = 20


class SharedTensors(Mapping[str, "Any"]):
    """The job's shared tensors by name. Each is a numpy array over the shared memory, or, for bfloat16, which numpy
    does not have, a tensor of torch: what one process writes all others see. There are no locks in it."""

    def __init__(self) -> None:
        self._all: dict[str, dict[str, Any]] | None = None
        self._memories: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        entries = self._entries()
        if name in entries:
            return _view(entries[name], self._memory(entries[name]["path"]))
        if not entries:
            raise KeyError(f"{name!r}: no tensors are shared here; a job of mprun names them in its field 'shared'")
        known = ", ".join(list(entries)[:_MOST_SHOWN]) + (", ..." if len(entries) > _MOST_SHOWN else "")
        raise KeyError(f"{name!r}: there is no such shared tensor, there are {known}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries())

    def __len__(self) -> int:
        return len(self._entries())

    def __contains__(self, name: object) -> bool:
        return name in self._entries()

    def __repr__(self) -> str:
        tensors = (f"{name} {entry['dtype']} {entry['shape']}" for name, entry in self._entries().items())
        return f"<mprun.shared: {', '.join(tensors)}>"

    def _entries(self) -> dict[str, dict[str, Any]]:
        if self._all is None:
            import json

            self._all = json.loads(os.environ.get(_VARIABLE) or "{}")
        return self._all

    def _memory(self, path: str) -> Any:
        """The mapped file. Uses no lock, which a fork could leave locked: of two threads the first one wins."""
        if path not in self._memories:
            self._memories.setdefault(path, _map(path))
        return self._memories[path]


def _map(path: str) -> Any:
    import mmap

    try:
        with open(path, "r+b", buffering=0) as file:
            memory = mmap.mmap(file.fileno(), 0)
    except OSError as error:
        message = f"cannot map the job's shared tensors: {error}; mprun has ended, or runs as another user or elsewhere"
        raise OSError(error.errno, message) from error
    try:
        memory.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # the kernel has no huge pages
        pass
    return memory


def _view(entry: dict[str, Any], memory: Any) -> Any:
    shape, offset = tuple(entry["shape"]), entry["offset"]
    if entry["dtype"] != "bfloat16":
        import numpy

        order = "F" if entry["fortran_order"] else "C"
        return numpy.ndarray(shape, entry["dtype"], memory, offset, order=order)
    import math

    import torch

    elements = math.prod(shape)
    if elements == 0:
        return torch.empty(shape, dtype=torch.bfloat16)
    return torch.frombuffer(memory, dtype=torch.bfloat16, count=elements, offset=offset).reshape(shape)
