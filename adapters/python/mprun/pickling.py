"""Functions, inputs and results as bytes, the same on both sides of a run. Large buffers, as those of arrays, are kept
out of the pickle (protocol 5), so that files can hold them and other processes map them.

cloudpickle, or the copy of it in joblib, is used for what plain pickle cannot do: lambdas, closures, and what a
notebook or the main script defines.
"""
from __future__ import annotations

import copyreg
import importlib.util
import io
import math
import pickle
import sys
from collections import ChainMap
from typing import Any

PROTOCOL = 5
#: Smaller buffers stay in the pickle.
SMALLEST_BUFFER = 64 * 1024
#: As many tensors as one task may return; see tensor_files.py.
MOST_BUFFERS = 1000
#: Larger whole numbers are pickled: mprun refuses JSON with one that no float can hold, and Python limits the digits.
MOST_BITS = 1000


def load_cloudpickle() -> Any:
    """The module cloudpickle, or joblib's copy of it; None if neither is installed."""
    for name in ("cloudpickle", "joblib.externals.cloudpickle"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def has_cloudpickle() -> bool:
    """Whether load_cloudpickle() finds one; loads nothing, since the import of joblib takes a fifth of a second."""
    return any(importlib.util.find_spec(name) for name in ("cloudpickle", "joblib"))


def reduce_array(array: Any) -> Any:
    """A numpy array whose buffer can be kept out of the pickle: one in C or Fortran order."""
    contiguous = array.flags.forc or array.nbytes < SMALLEST_BUFFER
    return (array if contiguous else array.copy()).__reduce_ex__(PROTOCOL)


def reduce_tensor(tensor: Any) -> Any:
    """A torch tensor as a numpy array where numpy has its dtype and it is nothing but numbers on the CPU."""
    plain = tensor.device.type == "cpu" and str(tensor.layout) == "torch.strided" and not tensor.requires_grad
    if not plain or tensor.numel() * tensor.element_size() < SMALLEST_BUFFER or tensor.is_conj() or tensor.is_neg():
        return tensor.__reduce_ex__(PROTOCOL)
    try:
        return tensor_of, (tensor.contiguous().numpy(),)
    except (TypeError, RuntimeError):  # bfloat16 and others that numpy does not have
        return tensor.__reduce_ex__(PROTOCOL)


def tensor_of(array: Any) -> Any:
    import torch

    return torch.from_numpy(array)


def reducers() -> dict[type, Any]:
    """The reducers for arrays, of the libraries that the program has loaded."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    found = {}
    if hasattr(numpy, "ndarray"):
        found[numpy.ndarray] = reduce_array  # type: ignore[union-attr]
    if hasattr(torch, "Tensor"):
        found[torch.Tensor] = reduce_tensor  # type: ignore[union-attr]
    return found


def run_pickler(kind: Any, value: Any, buffers: list[pickle.PickleBuffer] | None) -> bytes:
    def keep_inside(buffer: pickle.PickleBuffer) -> bool:
        if buffers is None or len(buffers) >= MOST_BUFFERS or buffer.raw().nbytes < SMALLEST_BUFFER:
            return True
        buffers.append(buffer)
        return False

    file = io.BytesIO()
    pickler = kind(file, protocol=PROTOCOL, buffer_callback=keep_inside)
    ours = reducers()
    if ours:
        pickler.dispatch_table = ChainMap(ours, getattr(pickler, "dispatch_table", copyreg.dispatch_table))
    pickler.dump(value)
    return file.getvalue()


def main_can_be_imported() -> bool:
    """Whether a worker could import the main script, as multiprocessing does; a notebook has none."""
    main = sys.modules.get("__main__")
    return getattr(main, "__file__", None) is not None or getattr(main, "__spec__", None) is not None


def dumps(value: Any, buffers: list[pickle.PickleBuffer] | None = None) -> bytes:
    """The pickle; its large buffers are appended to `buffers`, or are part of it without such a list. Raises what
    pickle raises, with what to do about it."""
    failure = None
    try:
        data = run_pickler(pickle.Pickler, value, buffers)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        failure = error
    else:
        if b"__main__" not in data:  # another process has another main module
            return data
        if load_cloudpickle() is None and main_can_be_imported():
            return data
    try:
        return dumps_by_value(value, buffers, failure)
    finally:
        failure = None  # or frame and exception would refer to each other


def dumps_by_value(value: Any, buffers: list[pickle.PickleBuffer] | None, error: Exception | None) -> bytes:
    cloudpickle = load_cloudpickle()
    if cloudpickle is None:
        why = str(error) if error is not None else "what this session defines has no file that a worker could import"
        raise pickle.PicklingError(
            f"{why}; define it at the top of a module, or install cloudpickle or joblib, which can pickle lambdas, "
            "closures and what a notebook defines"
        ) from error
    if buffers:
        buffers.clear()
    return run_pickler(cloudpickle.CloudPickler, value, buffers)


def is_plain(value: Any) -> bool:
    """Whether the value is the same after a way through JSON, and no string: None, a truth value, a number."""
    kind = type(value)
    if kind is int:
        return bool(value.bit_length() <= MOST_BITS)
    return value is None or kind is bool or (kind is float and math.isfinite(value))
