"""Values and keys of mprun.queue and mprun.dict as bytes: JSON text, and the bytes of arrays after it. No pickle.

A value is 8 bytes, the size of the text, then the text, then the blocks it refers to, each at a multiple of 64 bytes.
In the text, what JSON does not know is an object with one member: {"t": [..]} a tuple, {"d": {..}} a dict with string
keys, {"k": [[key, value], ..]} any other, {"b": [place, size]} bytes, {"a": [place, of, dtype, shape]} an array.
"""
from __future__ import annotations

import json
import sys
from typing import Any, Callable, NoReturn

from mprun.tensors import TensorError, is_tensor, view

ALIGNMENT = 64
HEADER = 8

MAY_HOLD = (
    "a queue or dict of mprun holds None, booleans, numbers, strings, bytes, numpy arrays and torch tensors on the CPU, and "
    "lists, tuples and dicts of these"
)
MAY_BE_KEY = "a key is a str, int, float, bool or None, or a tuple of these"


def encode(value: Any) -> list[Any]:
    """The value as bytes-like pieces; raises TypeError naming what cannot be kept, ValueError for a cycle."""
    if value is None or type(value) in (bool, int, float, str):
        return pieces_of(json.dumps(value), [])
    encoder = Encoder()
    try:
        text = json.dumps(encoder.plain(value), separators=(",", ":"))
    except RecursionError:
        raise ValueError("the value contains itself, or is nested too deeply") from None
    return pieces_of(text, encoder.blocks)


def pieces_of(text: str, blocks: list[Any]) -> list[Any]:
    raw = text.encode()  # json.dumps writes ASCII
    pieces: list[Any] = [len(raw).to_bytes(HEADER, "little") + raw]
    end = len(pieces[0])
    for block in blocks:
        pieces.append(b"\0" * (-end % ALIGNMENT))
        pieces.append(block)
        end += len(pieces[-2]) + len(block)
    return pieces


class Encoder:
    """Separates the arrays and bytes of one value from it."""

    def __init__(self) -> None:
        self.blocks: list[Any] = []
        self.end = 0  # of the blocks, from where the first begins

    def add(self, block: Any) -> int:
        place = self.end + (-self.end % ALIGNMENT)
        self.blocks.append(block)
        self.end = place + len(block)
        return place

    def plain(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if kind is list:
            return [self.plain(member) for member in value]
        if kind is tuple:
            return {"t": [self.plain(member) for member in value]}
        if kind is dict:
            if all(type(key) is str for key in value):
                return {"d": {key: self.plain(member) for key, member in value.items()}}
            return {"k": [[self.plain(key), self.plain(member)] for key, member in value.items()]}
        if kind is bytes:
            return {"b": [self.add(value), len(value)]}
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.generic):
            item = value.item()
            if type(item) in (bool, int, float, str):
                return item
        if is_tensor(value):
            return {"a": self.array(value)}
        refuse(value)

    def array(self, value: Any) -> list[Any]:
        try:
            tensor = view(value)
        except TensorError as error:
            raise TypeError(f"{error}; {MAY_HOLD}") from None
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            return [self.add(tensor.memory), "torch", str(value.dtype).removeprefix("torch."), list(tensor.shape)]
        if not tensor.npy:
            raise TypeError(f"numpy has no dtype {tensor.dtype()}: convert the array; {MAY_HOLD}")
        return [self.add(tensor.memory), "numpy", tensor.npy, list(tensor.shape)]


def refuse(value: Any) -> NoReturn:
    """Raises TypeError that says what to do instead."""
    kind = type(value)
    for plain in (dict, list, tuple, str, int, float, bytes):
        if isinstance(value, plain):
            raise TypeError(
                f"a {kind.__name__} would come back as a plain {plain.__name__}: convert it with {plain.__name__}(...); "
                + MAY_HOLD
            )
    cure = {"set": "sorted(...)", "frozenset": "sorted(...)", "bytearray": "bytes(...)"}.get(kind.__name__)
    advice = f"convert it with {cure}" if cure else "pass what it is made of"
    raise TypeError(f"a {kind.__name__} cannot be passed between processes: {advice}; {MAY_HOLD}")


def decode(raw: bytearray) -> Any:
    """The decoded value; its arrays lie in `raw`, which belongs to them from now on."""
    size = int.from_bytes(raw[:HEADER], "little")
    text = raw[HEADER : HEADER + size].decode()
    if not text.startswith(("{", "[")):
        return json.loads(text)
    end = HEADER + size
    return Decoder(raw, end + (-end % ALIGNMENT)).value(json.loads(text))


class Decoder:
    """Rebuilds one value."""

    def __init__(self, raw: bytearray, blocks: int) -> None:
        self.raw, self.blocks = raw, blocks
        self.kinds: dict[str, Callable[[Any], Any]] = {
            "t": lambda members: tuple(map(self.value, members)),
            "d": lambda members: {key: self.value(member) for key, member in members.items()},
            "k": lambda members: {self.value(key): self.value(member) for key, member in members},
            "b": lambda block: bytes(self.raw[self.blocks + block[0] : self.blocks + block[0] + block[1]]),
            "a": lambda block: self.array(*block),
        }

    def value(self, plain: Any) -> Any:
        if isinstance(plain, list):
            return [self.value(member) for member in plain]
        if isinstance(plain, dict):
            ((kind, content),) = plain.items()
            return self.kinds[kind](content)
        return plain

    def array(self, place: int, of: str, dtype: str, shape: list[int]) -> Any:
        if of == "numpy":
            import numpy

            return numpy.ndarray(tuple(shape), numpy.dtype(dtype), self.raw, self.blocks + place)
        import torch

        kind = getattr(torch, dtype)
        count = 1
        for length in shape:
            count *= length
        if count == 0:
            return torch.empty(shape, dtype=kind)
        return torch.frombuffer(self.raw, dtype=kind, count=count, offset=self.blocks + place).reshape(shape)


def encode_key(key: Any) -> bytes:
    """The key as bytes: the same for keys that Python considers equal (1, 1.0 and True); raises TypeError."""
    if type(key) is str:
        return b"s" + key.encode("utf-8", "surrogatepass")
    return b"j" + json.dumps(canonical(key), separators=(",", ":")).encode()


def canonical(key: Any) -> Any:
    kind = type(key)
    if key is None or kind is str or kind is int:
        return key
    if kind is bool:
        return int(key)
    if kind is float:
        if key != key:
            raise ValueError("NaN is not equal to itself, so it cannot be a key")
        return int(key) if key.is_integer() else key
    if kind is tuple:
        return {"t": [canonical(member) for member in key]}
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(key, numpy.generic) and type(key.item()) in (bool, int, float, str):
        return canonical(key.item())
    raise TypeError(f"a {kind.__name__} cannot be a key: {MAY_BE_KEY}")


def decode_key(raw: bytes) -> Any:
    if raw[:1] == b"s":
        return raw[1:].decode("utf-8", "surrogatepass")
    return key_of(json.loads(raw[1:]))


def key_of(plain: Any) -> Any:
    return tuple(map(key_of, plain["t"])) if isinstance(plain, dict) else plain
