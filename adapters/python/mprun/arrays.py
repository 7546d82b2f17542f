"""The arrays that a job has as inputs: a worker maps the files, and a task is given rows of them.

mprun has read the headers before the launch; this module does what needs numpy. It copies nothing and reads no pickle.
"""
from __future__ import annotations

import bisect
import itertools
import math
import mmap
from typing import Any, Callable, NamedTuple

from mprun.protocol import StartFailure

#: Longest header of a .npy file that mprun accepts, as in core/formats/npy_reader.h; numpy's own limit is lower.
LONGEST_NPY_HEADER = 64 * 1024

#: What a task takes: a row, or the rows from the first number to the second one.
Place = int | list[int]


class Stored(NamedTuple):
    """One array in a file; written by core/launch/python_process.cc."""

    name: str
    path: str
    rows: int
    dtype: str
    shape: list[int]
    offset: int


def wrap(function: Callable[..., Any], config: dict[str, Any]) -> Callable[[Any], Any]:
    """The function, called with arrays in place of the task's input."""
    try:
        import numpy  # noqa: F401
    except ImportError as error:
        message = f"arrays as inputs need numpy: {error}; install it for this interpreter"
        raise StartFailure("inputs", message, error) from error
    stored = [Stored(**array) for array in config["stored"]]
    if config["file_is_task"]:
        return lambda path: function(map_npy(path))
    if config["one_by_one"]:
        files = Files(stored)
        return lambda place: function(files.rows(place))
    mapped = map_all(stored)
    if not stored[0].name:
        (array,) = mapped.values()
        return lambda place: function(cut(array, place))
    return lambda place: function(**{name: cut(array, place) for name, array in mapped.items()})


def cut(array: Any, place: Place) -> Any:
    """One row, or several of them, as a view."""
    return array[place] if isinstance(place, int) else array[place[0] : place[1]]


def map_all(stored: list[Stored]) -> dict[str, Any]:
    """Maps every file once; a file that cannot be mapped fails the start."""
    memories: dict[str, Any] = {}
    mapped = {}
    for array in stored:
        try:
            if not array.dtype:
                mapped[array.name] = map_npy(array.path, array.rows)
            elif array.dtype == "bfloat16":
                mapped[array.name] = PrivateRows(array)
            else:
                mapped[array.name] = view(array, memories)
        except (OSError, TypeError, ValueError, MemoryError) as error:
            raise StartFailure("inputs", f"cannot map {array.path}: {error}", error) from error
    return mapped


def map_npy(path: str, rows: int | None = None) -> Any:
    """A .npy file as a read-only array; `rows` is the number that it had when the job was resolved."""
    import numpy

    options: dict[str, Any] = {"mmap_mode": "r", "allow_pickle": False}
    try:
        array = numpy.load(path, max_header_size=LONGEST_NPY_HEADER, **options)
    except TypeError:  # before numpy 1.24 there is neither this limit nor the option
        array = numpy.load(path, **options)
    if rows is not None and len(array) != rows:
        raise ValueError(f"it has changed: it had {rows} rows, now it has {len(array)}")
    return array


def view(array: Stored, memories: dict[str, Any]) -> Any:
    """A tensor as a read-only view of its file, which is mapped once for all of them."""
    import numpy

    if array.path not in memories:
        memories[array.path] = numpy.memmap(array.path, dtype=numpy.uint8, mode="r")
    return numpy.ndarray(tuple(array.shape), array.dtype, memories[array.path], array.offset)


class PrivateRows:
    """Rows of a BF16 tensor, which numpy does not have, as torch tensors.

    torch has no read-only tensors. So every task gets a mapping of its own, private to it: the pages are those of the
    file until the task writes to them, and what it writes never reaches the file or another task.
    """

    def __init__(self, array: Stored) -> None:
        try:
            import torch
        except (ImportError, OSError) as error:  # OSError: a library of torch is missing
            message = (
                f"the tensor {array.name!r} of {array.path} is BF16, which numpy does not have and torch does, but "
                f"torch cannot be imported ({error}): install it, or save the tensor as F32"
            )
            raise StartFailure("inputs", message, error) from error
        self.torch = torch
        self.file = open(array.path, "rb", buffering=0)  # kept open: replacing the file must not change the rows
        self.offset, self.shape = array.offset, array.shape[1:]
        self.row_elements = math.prod(self.shape)

    def __getitem__(self, place: int | slice) -> Any:
        first, rows = (place, 1) if isinstance(place, int) else (place.start, place.stop - place.start)
        shape = self.shape if isinstance(place, int) else [rows, *self.shape]
        elements = rows * self.row_elements
        if elements == 0:
            return self.torch.empty(shape, dtype=self.torch.bfloat16)
        begin = self.offset + 2 * first * self.row_elements
        page = begin - begin % mmap.ALLOCATIONGRANULARITY
        memory = mmap.mmap(
            self.file.fileno(), begin - page + 2 * elements, flags=mmap.MAP_PRIVATE,
            prot=mmap.PROT_READ | mmap.PROT_WRITE, offset=page,
        )
        flat = self.torch.frombuffer(memory, dtype=self.torch.bfloat16, count=elements, offset=begin - page)
        return flat.reshape(shape)


class Files:
    """.npy files whose rows are numbered from the first file to the last; one is mapped at a time."""

    def __init__(self, stored: list[Stored]) -> None:
        self.stored = stored
        self.ends = list(itertools.accumulate(array.rows for array in stored))
        self.number = -1
        self.array: Any = None

    def rows(self, place: list[int]) -> Any:
        """The rows from the first number to the second one, which are in one file."""
        number = bisect.bisect_right(self.ends, place[0])
        if number != self.number:
            array = self.stored[number]
            self.array, self.number = map_npy(array.path, array.rows), number
        begin = self.ends[number] - self.stored[number].rows
        return self.array[place[0] - begin : place[1] - begin]
