"""Objects that the processes of a job share by name: counter, lock, barrier, queue and dict.

All lie in memory that mprun has made for the job; no process serves them. The first use of a name makes the object,
which lives as long as the job. Every process below mprun finds it: workers and ranks of all start methods, and what
they start. Outside of mprun, an object is shared with the processes that are forked after its first use.

A process may be killed at any instruction: what it was changing is changed or not, never half, and a lock that it held
goes to the next thread, which can find out which holder died.
"""
from __future__ import annotations

import struct
import threading
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from queue import Empty, Full
from typing import Any

import mprun
from mprun import _mprun
from mprun.sync_values import decode, decode_key, encode, encode_key


class Counter(_mprun.SyncCounter):
    """A whole number of 64 bits, 0 at first: `mprun.counter("done").add()`.

    counter(name): the counter of that name. Raises TypeError where something of another kind has the name.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name,)

    def __repr__(self) -> str:
        return f"<mprun.counter {self.name!r}: {self.value}>"


class Lock(_mprun.SyncLock):
    """A lock that one thread of all processes can have: `with mprun.lock("log"):`.

    lock(name): the lock of that name. Raises TypeError where something of another kind has the name.

    If its holder dies, the next thread gets it, and finds the dead holder in `dead_holder`.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name,)

    def __repr__(self) -> str:
        return f"<mprun.lock {self.name!r}: {'held' if self.locked() else 'free'}>"


class Barrier(_mprun.SyncBarrier):
    """Where processes wait for each other: `mprun.barrier().wait()`.

    barrier(name="barrier", parties=None): the barrier of that name, for as many as there are ranks or workers. Raises
    ValueError where it was made for another number of parties, or `parties` is not from 1 to 4096.

    It can be used again and again. A process that dies while it waits has not arrived.
    """

    __slots__ = ()

    def __init__(self, name: str = "barrier", parties: int | None = None) -> None:
        super().__init__(name, mprun.world_size() if parties is None else parties)

    def wait(self, timeout: float | None = None) -> int:
        """Waits until all parties wait; returns the number of this one's arrival, from 0 to parties - 1.

        Raises threading.BrokenBarrierError if a party waits longer than its `timeout` (seconds), or calls abort(): in
        all parties that wait, and all that arrive before reset().
        """
        index = self._wait(timeout)
        if index is None:
            raise threading.BrokenBarrierError
        return index

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.parties)

    def __repr__(self) -> str:
        state = "broken" if self.broken else f"{self.n_waiting} of {self.parties} wait"
        return f"<mprun.barrier {self.name!r}: {state}>"


class Queue(_mprun.SyncQueue):
    """Items that any process puts and one process gets, in the order in which they were put.

    queue(name, maxsize=0): the queue of that name; not more than `maxsize` items fit, 0 for as many as there is memory
    for (256 MiB for all queues and dicts of a job). Raises ValueError where it was made with another maxsize.

    An item is put whole or not at all. If a process dies, the items that it has taken are lost. Items are copies: None,
    booleans, numbers, strings, bytes, numpy arrays, torch tensors on the CPU, and lists, tuples and dicts of these.
    """

    __slots__ = ()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Puts an item. If the queue is full, waits for room, for ever or `timeout` seconds, then raises queue.Full.

        Raises TypeError for an item of another type, MemoryError if the memory is full.
        """
        if not self._put(encode(item), block, timeout):
            raise Full

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Takes the first item. If there is none, waits, for ever or `timeout` seconds, then raises queue.Empty."""
        raw = self._get(block, timeout)
        if raw is None:
            raise Empty
        return decode(raw)

    def put_nowait(self, item: Any) -> None:
        """put(item, block=False)"""
        self.put(item, False)

    def get_nowait(self) -> Any:
        """get(block=False)"""
        return self.get(False)

    def empty(self) -> bool:
        """Whether no item is in it now."""
        return self.qsize() == 0

    def full(self) -> bool:
        """Whether no item fits now."""
        return 0 < self.maxsize <= self.qsize()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.maxsize)

    def __repr__(self) -> str:
        return f"<mprun.queue {self.name!r}: {self.qsize()} items>"


_MISSING = object()
_ENTRY = struct.Struct("=QQQ")


class Dict(_mprun.SyncDict):
    """A dict that all processes use: `mprun.dict("seen")["cat"] = 3`.

    dict(name): the dict of that name. Raises TypeError where something of another kind has the name.

    Every single operation is atomic, including setdefault() and pop(); update() is one for each key. Iteration is over
    what was there when it began. Values are copies, of the types that a queue takes: to change one, store it again.
    Keys are str, int, float, bool, None and tuples of these; those that are equal are one key (True is 1).
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, key: Any) -> Any:
        raw = self._get(encode_key(key))
        if raw is None:
            raise KeyError(key)
        return decode(raw)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._set(encode_key(key), encode(value))

    def __delitem__(self, key: Any) -> None:
        if self._pop(encode_key(key)) is None:
            raise KeyError(key)

    def __contains__(self, key: Any) -> bool:
        return self._has(encode_key(key))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def __ior__(self, other: Any) -> Dict:
        self.update(other)
        return self

    def __eq__(self, other: Any) -> bool:
        return dict(self.items()) == (dict(other.items()) if isinstance(other, Mapping) else other)

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of the key, or `default`."""
        raw = self._get(encode_key(key))
        return default if raw is None else decode(raw)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """The value of the key, which becomes `default` if it has none, in one atomic step."""
        raw = self._setdefault(encode_key(key), encode(default))
        return default if raw is None else decode(raw)

    def pop(self, key: Any, default: Any = _MISSING) -> Any:
        """Removes the key and returns its value, to one process only; `default`, or KeyError, if it is not there."""
        raw = self._pop(encode_key(key))
        if raw is not None:
            return decode(raw)
        if default is _MISSING:
            raise KeyError(key)
        return default

    def popitem(self) -> tuple[Any, Any]:
        """Removes the key that was added last; raises KeyError if there is none."""
        while True:
            keys = self.keys()
            if not keys:
                raise KeyError("popitem(): the dict is empty")
            raw = self._pop(encode_key(keys[-1]))
            if raw is not None:
                return keys[-1], decode(raw)

    def update(self, other: Any = (), /, **more: Any) -> None:
        """Sets every key of a mapping, or of (key, value) pairs; each of them atomically."""
        if hasattr(other, "keys"):
            other = [(key, other[key]) for key in other.keys()]
        for key, value in (*other, *more.items()):
            self[key] = value

    def keys(self) -> list[Any]:
        """The keys that are there now, in the order in which they were added."""
        return [decode_key(key) for key, _ in self._entries(False)]

    def values(self) -> list[Any]:
        """The values that are there now, in the order in which their keys were added."""
        return [decode(value) for _, value in self._entries(True)]

    def items(self) -> list[tuple[Any, Any]]:
        """Keys and values that are there now."""
        return [(decode_key(key), decode(value)) for key, value in self._entries(True)]

    def copy(self) -> dict[Any, Any]:
        """A dict of this process with what is there now."""
        return dict(self.items())

    def _entries(self, with_values: bool) -> Iterable[tuple[bytes, bytearray]]:
        raw = self._snapshot(with_values)
        found: list[tuple[int, bytes, bytearray]] = []
        at = 0
        while at < len(raw):
            serial, key_size, value_size = _ENTRY.unpack_from(raw, at)
            middle = at + _ENTRY.size + key_size
            found.append((serial, bytes(raw[middle - key_size : middle]), raw[middle : middle + value_size]))
            at = middle + value_size
        found.sort(key=lambda entry: entry[0])
        return [(key, value) for _, key, value in found]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name,)

    def __repr__(self) -> str:
        return f"<mprun.dict {self.name!r}: {len(self)} keys>"


MutableMapping.register(Dict)
