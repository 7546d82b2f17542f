"""Tensors among the values of tasks: what counts as one, and its memory.

Imports neither numpy nor torch, nor anything else that takes time: a value of theirs exists only if the program has
imported them.
"""
from __future__ import annotations

import sys

TYPE_CHECKING = False  # as typing has it, whose import takes a millisecond or two
if TYPE_CHECKING:
    from typing import Any

#: The names of torch's dtypes in .npy files; NOT_IN_NPY has those that such files do not have.
TORCH_DTYPES = {
    "bool": "|b1", "uint8": "|u1", "int8": "|i1", "int16": "<i2", "int32": "<i4", "int64": "<i8",
    "uint16": "<u2", "uint32": "<u4", "uint64": "<u8", "float16": "<f2", "float32": "<f4", "float64": "<f8",
    "complex64": "<c8", "complex128": "<c16",
}
#: The dtypes that .npy files do not have, by their names in .safetensors files.
NOT_IN_NPY = {"bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}
#: The names in .safetensors files of the dtypes of .npy files.
SAFETENSORS_DTYPES = {
    "|b1": "BOOL", "|u1": "U8", "|i1": "I8", "<i2": "I16", "<u2": "U16", "<f2": "F16", "<i4": "I32", "<u4": "U32",
    "<f4": "F32", "<i8": "I64", "<u8": "U64", "<f8": "F64",
}
#: Devices of DLPack whose memory is that of the machine: CPU, and pinned for CUDA or ROCm.
DLPACK_CPU = (1, 3, 11)


class TensorError(TypeError):
    """A task's tensor cannot be kept; the message says what to do."""


class HoldsTensor(Exception):
    """The value that should become JSON is, or holds, a tensor."""


class Tensor:
    """A tensor's bytes in C order, and what they are."""

    def __init__(self, npy: str, safetensors: str, item_bytes: int, shape: tuple[int, ...], memory: memoryview) -> None:
        self.npy = npy  # the dtype in .npy files, "<f4"; "" if they have none
        self.safetensors = safetensors  # the dtype in .safetensors files, "F32"; "" if they have none
        self.item_bytes = item_bytes
        self.shape = shape
        self.memory = memory  # of bytes, one-dimensional

    def dtype(self) -> str:
        """The dtype, human-readable."""
        return self.npy or self.safetensors


def is_tensor(value: Any) -> bool:
    """Whether the value is an array that a file may keep; whether it can be read is not checked yet."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and isinstance(value, getattr(numpy, "ndarray", ())):
        return True
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return True
    return hasattr(type(value), "__dlpack__") or is_buffer(value)


def is_buffer(value: Any) -> bool:
    """Whether it is one of Python's own arrays; bytes are often text and stay refused."""
    array, ctypes = sys.modules.get("array"), sys.modules.get("ctypes")
    if isinstance(value, memoryview) or (array is not None and isinstance(value, array.array)):
        return True
    return ctypes is not None and isinstance(value, ctypes.Array)


def view(value: Any) -> Tensor:
    """The memory of a tensor, without a copy where it is contiguous; raises TensorError."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return view_torch(value)
    if numpy is not None and isinstance(value, getattr(numpy, "ndarray", ())):
        return view_numpy(numpy, value)
    if hasattr(type(value), "__dlpack__"):
        return view_dlpack(numpy, value)
    return view_buffer(memoryview(value))


def view_torch(value: Any) -> Tensor:
    import ctypes  # torch has it loaded

    if value.device.type != "cpu":
        raise TensorError(f"the tensor is on the device {value.device}: return it with .cpu()")
    name = str(value.dtype).removeprefix("torch.")
    if getattr(value, "is_nested", False) or str(value.layout) != "torch.strided":
        raise TensorError(f"the tensor's layout is {value.layout}: return it with .to_dense()")
    if value.is_quantized:
        raise TensorError("the tensor is quantized: return it with .dequantize(), or its .int_repr()")
    npy = TORCH_DTYPES.get(name, "")
    if not npy and name not in NOT_IN_NPY:
        raise TensorError(f"neither .npy nor .safetensors files have the dtype {name}: convert the tensor")
    value = value.detach().resolve_conj().resolve_neg().contiguous()
    size = value.numel() * value.element_size()
    address = value.data_ptr()
    if size and not address:
        raise TensorError("the tensor has no memory of its own")
    block = (ctypes.c_ubyte * size).from_address(address) if size else (ctypes.c_ubyte * 0)()
    block.tensor = value  # lives as long as its memory is used
    dtype = SAFETENSORS_DTYPES.get(npy, "") if npy else NOT_IN_NPY[name]
    return Tensor(npy, dtype, value.element_size(), tuple(value.shape), memoryview(block))


def view_numpy(numpy: Any, value: Any) -> Tensor:
    if isinstance(value, numpy.ma.MaskedArray):
        raise TensorError("the array is masked, which no file can say: return it with .filled(...)")
    dtype = value.dtype
    if dtype.hasobject:
        raise TensorError("the array holds Python objects (dtype object), which only pickle could keep: return numbers")
    if dtype.names is not None or dtype.subdtype is not None or dtype.kind not in "biufcSUmM":
        raise TensorError(f"the array's dtype is {dtype}, which is no plain one: return an array for each field")
    if dtype.itemsize == 0:
        raise TensorError(f"the array's dtype is {dtype}, whose elements have no bytes: convert it with .astype(...)")
    plain = numpy.asarray(value).astype(dtype.newbyteorder("="), order="C", copy=False)
    memory = memoryview(plain.reshape(-1).view(numpy.uint8))
    npy = plain.dtype.str
    return Tensor(npy, SAFETENSORS_DTYPES.get(npy, ""), dtype.itemsize, value.shape, memory)


def view_dlpack(numpy: Any, value: Any) -> Tensor:
    device = value.__dlpack_device__()
    if device[0] not in DLPACK_CPU:
        raise TensorError(
            f"the {type(value).__name__} is not in the CPU's memory (DLPack device {int(device[0])}): copy it there, "
            "as torch does with .cpu()"
        )
    if numpy is None:
        raise TensorError(f"a {type(value).__name__} can be kept only where numpy is imported: import it")
    try:
        return view_numpy(numpy, numpy.from_dlpack(value))
    except (AttributeError, RuntimeError, BufferError, TypeError) as error:
        raise TensorError(f"the {type(value).__name__} cannot be read: {error}; return it as a numpy array") from None


def view_buffer(buffer: memoryview) -> Tensor:
    code = buffer.format
    if code[:1] in "@=<" and sys.byteorder == "little":
        code = code[1:]
    kinds = {"?": "b", "e": "f", "f": "f", "d": "f", "Zf": "c", "Zd": "c"}
    kinds.update(dict.fromkeys("bhilqn", "i"), **dict.fromkeys("BHILQN", "u"))
    if code not in kinds:
        raise TensorError(f"the buffer's format is {buffer.format!r}, which is no plain number: return a numpy array")
    npy = f"{'|' if buffer.itemsize == 1 else '<'}{kinds[code]}{buffer.itemsize}"
    memory = memoryview(buffer.tobytes())
    return Tensor(npy, SAFETENSORS_DTYPES.get(npy, ""), buffer.itemsize, tuple(buffer.shape), memory)
