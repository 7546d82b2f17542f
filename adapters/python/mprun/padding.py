"""Pads tensors of different shapes, for the names in "output.pad": each is at the beginning of a row."""
from __future__ import annotations

import math
from collections.abc import Sequence

from mprun.tensors import Tensor, TensorError

TYPE_CHECKING = False  # as typing has it, whose import takes a millisecond or two
if TYPE_CHECKING:
    from typing import Any


def pad(tensor: Tensor, shape: Sequence[int], fill: float | str) -> Tensor | None:
    """A copy with that shape, `fill` after the tensor's own elements; None: it is larger, or has other axes.

    Raises TensorError if its dtype has no such number.
    """
    if len(tensor.shape) != len(shape) or any(own > most for own, most in zip(tensor.shape, shape)):
        return None
    import numpy  # a task that returns tensors of torch or numpy has it loaded

    dtype = numpy.dtype(tensor.npy)
    number = float(fill) if isinstance(fill, str) else fill
    if not holds(numpy, dtype, number):
        raise TensorError(f'"output.pad" fills with {fill}, which the dtype {dtype} has not: choose another number')
    row = numpy.full(shape, number, dtype)
    row[tuple(slice(length) for length in tensor.shape)] = numpy.frombuffer(tensor.memory, dtype).reshape(tensor.shape)
    memory = memoryview(row.reshape(-1).view(numpy.uint8))
    return Tensor(tensor.npy, tensor.safetensors, tensor.item_bytes, tuple(shape), memory)


def holds(numpy: Any, dtype: Any, number: float) -> bool:
    """Whether a dtype has a number; a float may be rounded."""
    if dtype.kind in "fc":
        return not math.isfinite(number) or abs(number) <= numpy.finfo(dtype).max
    if dtype.kind not in "biu" or not math.isfinite(number) or number != int(number):
        return False
    if dtype.kind == "b":
        return number in (0, 1)
    return bool(numpy.iinfo(dtype).min <= number <= numpy.iinfo(dtype).max)
