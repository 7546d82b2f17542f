"""The tensors that tasks return, in tensors/ of the run directory.

Tensors of one name, dtype and shape are gathered: every task writes its rows of NAME.npy, directly from the tensor's
memory. Others go to TASK.safetensors. mprun checks what a result claims about them (core/record/tensor_files.h) and
completes the files when the job is over.
"""
from __future__ import annotations

import errno
import fcntl
import json
import os
import struct
from collections.abc import Iterator, Sequence

from mprun import _mprun
from mprun import task as tasks
from mprun.padding import pad
from mprun.tensors import HoldsTensor, Tensor, TensorError, is_tensor, view

TYPE_CHECKING = False  # as typing has it, whose import takes a millisecond or two
if TYPE_CHECKING:
    from typing import Any

#: The tensors one task may return; core/wire/tensor_claims.h has the same number.
MOST_TENSORS = 1000
LONGEST_NAME = 200
#: The largest number of rows, in digits: what a header has room for.
ROW_DIGITS = 20
#: The page size of most machines; numpy reads no header that is much longer.
PAGE = 4096
LONGEST_SAFETENSORS_HEADER = 8 * 1024 * 1024
DEEP = "the value holds a tensor inside of a member; return it as the value itself, or in one dict, list or tuple"
ROWS, SAFETENSORS = 0, 1  # enum mprun_tensor_kind of core/wire/protocol.h


class Named:
    """One tensor of a task: where in the value it stands, and its name."""

    def __init__(self, key: Any, name: str, value: Any) -> None:
        self.key = key  # of a dict, index of a list; None: it is the whole value
        self.name = name
        self.value = value  # the tensor as the task returned it
        self.tensor = view(value)


class Rows:
    """The rows of a gathered file that a task may write, and how that file begins."""

    def __init__(self, begin: int, end: int, total: int, row_bytes: int, header: bytes, *, is_batch: bool) -> None:
        self.begin, self.end = begin, end
        self.total = total  # of the file; 0: not known yet
        self.row_bytes = row_bytes
        self.header = header
        self.is_batch = is_batch  # the tensor's first axis is that of the file

    def file_bytes(self) -> int:
        """The size of the file, as far as it is known."""
        return len(self.header) + self.total * self.row_bytes


def npy_header(dtype: str, rows: int, row_shape: Sequence[int], row_bytes: int) -> bytes:
    """The header of a .npy file, with room for any number of rows. core/record/tensor_files.cc writes the same.

    If a row has the size of a page or more, the data begins on a page: that speeds up copying.
    """

    def text(count: int) -> str:
        shape = ", ".join(str(length) for length in (count, *row_shape))
        return f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({shape}{'' if row_shape else ','}), }}"

    prefix = 10
    unit = PAGE if row_bytes >= PAGE else 64  # the format asks for 64
    length = (prefix + len(text(0)) + ROW_DIGITS) // unit * unit + unit - prefix
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + text(rows).ljust(length - 1).encode() + b"\n"


def write_all(fd: int, memory: memoryview, offset: int) -> None:
    """Writes all bytes at an offset; releases the GIL meanwhile."""
    done = 0
    while done < len(memory):
        done += os.pwrite(fd, memory[done:], offset + done)


def check_name(name: Any) -> str:
    """The name of a tensor's file; raises TensorError."""
    if not isinstance(name, str):
        raise TensorError(f"the dict names a tensor by {name!r}; name it by a string")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        size = 0
    hidden = name.startswith(".")
    if not 0 < size <= LONGEST_NAME or hidden or any(c == "/" or ord(c) < 0x20 or ord(c) == 0x7F for c in name):
        raise TensorError(
            f"the dict names a tensor {name[:LONGEST_NAME]!r}, which is no plain file name: use at most {LONGEST_NAME} "
            "bytes, no /, no control characters, and no dot in front"
        )
    return name


def members(value: Any) -> Iterator[tuple[Any, Any]]:
    """The members of a value that may be tensors: (key, member)."""
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, (list, tuple)):
        yield from enumerate(value)


def find_tensors(value: Any) -> list[Named]:
    """The tensors of a value, all of them readable; raises TensorError."""
    if is_tensor(value):
        return [Named(None, "result", value)]
    found = [(key, member) for key, member in members(value) if is_tensor(member)]
    if not found:
        raise TensorError(DEEP)
    if len(found) > MOST_TENSORS:
        raise TensorError(f"the value holds {len(found)} tensors, at most {MOST_TENSORS} may be: stack them")
    named = isinstance(value, dict)
    return [Named(key, check_name(key) if named else str(key), member) for key, member in found]


class TensorFiles:
    """What one worker or rank writes below tensors/."""

    def __init__(
        self, folder: str, format: str, tasks: int | None, rows: int | None, pad: dict[str, dict[str, Any]]
    ) -> None:
        self.folder, self.format, self.tasks, self.rows, self.pad = folder, format, tasks, rows, pad

    def encode(self, value: Any, task: int, input: Any) -> bytes | tuple[bytes, bytes]:
        """The value as JSON. If it holds tensors, writes them, and the claims about them come first."""
        try:
            return tasks.encode(value)
        except HoldsTensor:
            pass
        claims = b""
        references: dict[Any, Any] = {}
        apart: list[Named] = []
        for named in find_tensors(value):
            rows = self.gather(named, task, input)
            if rows is None:
                apart.append(named)
                continue
            where: dict[str, Any] = {"rows": [rows.begin, rows.end]} if rows.is_batch else {"row": rows.begin}
            if named.name in self.pad:
                where["shape"] = list(named.tensor.shape)
            references[named.key] = {"tensor": f"tensors/{named.name}.npy", **where}
            claims += claim(ROWS, named.name, rows.begin, rows.end)
        if apart:
            self.write_apart(task, apart)
        for named in apart:
            references[named.key] = {"tensor": f"tensors/{task}.safetensors", "name": named.name}
            claims += claim(SAFETENSORS, named.name, 0, 0)
        try:
            return claims, tasks.encode(replace(value, references))
        except HoldsTensor:
            raise TensorError(DEEP) from None

    def gather(self, named: Named, task: int, input: Any) -> Rows | None:
        """Writes a task's rows of NAME.npy; None: they do not fit."""
        if self.format != "npy" or not named.tensor.npy:
            return None
        tensor, ways = self.ways(named, task, input)
        if not ways:
            return None
        file = f"{named.name}.npy"
        try:
            fd = self.open_gathered(file, ways[0])
            try:
                head = os.pread(fd, max(len(way.header) for way in ways), 0)
                for rows in ways:
                    if head.startswith(rows.header):
                        write_all(fd, tensor.memory, len(rows.header) + rows.begin * rows.row_bytes)
                        if named.key is None and not rows.is_batch and tensor is named.tensor:
                            _mprun.keep_rows(named.value, tensor.memory, fd, len(rows.header))
                        return rows
            finally:
                os.close(fd)
        except OSError as error:
            raise explain(error, file, ways[0].file_bytes()) from None
        return None

    def ways(self, named: Named, task: int, input: Any) -> tuple[Tensor, list[Rows]]:
        """The tensor as it is written, and how a file may hold it. One as long as the task's batch counts as a batch of
        rows, unless an existing file says otherwise; for one that is padded, the number of axes decides."""
        tensor, padding = named.tensor, self.pad.get(named.name)
        batch = input if self.rows is not None and isinstance(input, list) else None
        is_batch = batch is not None and tensor.shape[:1] == (batch[1] - batch[0],)
        if padding is None:
            return tensor, [*([self.batch_rows(tensor, input)] if is_batch else []), self.task_row(tensor, task)]
        is_batch = is_batch and len(tensor.shape) > len(padding["shape"])
        padded = pad(tensor, [*tensor.shape[:is_batch], *padding["shape"]], padding["fill"])
        if padded is None:
            return tensor, []
        return padded, [self.batch_rows(padded, input) if is_batch else self.task_row(padded, task)]

    def batch_rows(self, tensor: Tensor, batch: list[int]) -> Rows:
        """The tensor as one row for each row of the task's batch, [begin, end)."""
        row_bytes = len(tensor.memory) // tensor.shape[0]
        header = npy_header(tensor.npy, self.rows or 0, tensor.shape[1:], row_bytes)
        return Rows(batch[0], batch[1], self.rows or 0, row_bytes, header, is_batch=True)

    def task_row(self, tensor: Tensor, task: int) -> Rows:
        """The tensor as the one row of its task."""
        size = len(tensor.memory)
        header = npy_header(tensor.npy, self.tasks or 0, tensor.shape, size)
        return Rows(task, task + 1, self.tasks or 0, size, header, is_batch=False)

    def open_gathered(self, file: str, rows: Rows) -> int:
        """Opens NAME.npy for writing; the first process makes it, whole and, if possible, with space for all rows."""
        path = os.path.join(self.folder, file)
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            os.makedirs(self.folder, 0o700, exist_ok=True)
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        temporary = os.path.join(self.folder, f".{file}.{os.getpid()}.tmp")
        try:
            lock(folder)  # else workers that start together would reserve the space many times over
            try:
                return os.open(path, flags)
            except FileNotFoundError:
                pass
            fd = make_file(temporary)
            try:
                _mprun.reserve_space(fd, rows.file_bytes())
                write_all(fd, memoryview(rows.header), 0)
                publish(temporary, path)
            except BaseException as error:
                os.close(fd)
                os.unlink(temporary)
                if isinstance(error, FileExistsError):  # a process without a lock was faster
                    return os.open(path, flags)
                raise
            return fd
        finally:
            fcntl.flock(folder, fcntl.LOCK_UN)  # a process that another thread forks now may keep the descriptor
            os.close(folder)

    def write_apart(self, task: int, apart: list[Named]) -> None:
        """Writes tensors that fit nowhere else to TASK.safetensors, which appears whole or not at all."""
        file = f"{task}.safetensors"
        apart.sort(key=lambda named: -named.tensor.item_bytes)  # so that each begins where its items are aligned
        header: dict[str, Any] = {}
        end = 0
        for named in apart:
            tensor = named.tensor
            if not tensor.safetensors:
                raise TensorError(self.why_nowhere(named))
            begin, end = end, end + len(tensor.memory)
            header[named.name] = {"dtype": tensor.safetensors, "shape": tensor.shape, "data_offsets": [begin, end]}
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        if len(text) > LONGEST_SAFETENSORS_HEADER:
            raise TensorError(f"the names of the task's tensors do not fit the header of {file}: use shorter ones")
        temporary = os.path.join(self.folder, f".{file}.{os.getpid()}.tmp")
        size = 8 + len(text) + end
        try:
            os.makedirs(self.folder, 0o700, exist_ok=True)
            fd = make_file(temporary)
            try:
                _mprun.reserve_space(fd, size)
                write_all(fd, memoryview(struct.pack("<Q", len(text)) + text), 0)
                for named in apart:
                    write_all(fd, named.tensor.memory, 8 + len(text) + header[named.name]["data_offsets"][0])
                os.rename(temporary, os.path.join(self.folder, file))
            except BaseException:
                os.unlink(temporary)
                raise
            finally:
                os.close(fd)
        except OSError as error:
            raise explain(error, file, size) from None

    def why_nowhere(self, named: Named) -> str:
        """Why a tensor is kept neither in a .npy nor in a .safetensors file, as a human-readable text."""
        subject = f"the tensor {named.name!r} of shape {list(named.tensor.shape)} and dtype {named.tensor.dtype()} "
        if self.format != "npy":
            return subject + 'cannot be in a .safetensors file: convert it, or use "output": {"tensors": "npy"}'
        return subject + (
            f"does not fit tensors/{named.name}.npy, which holds those of other tasks, and .safetensors files, which "
            "take what does not fit, have no such dtype: return the same shape and dtype from every task, or convert it"
        )


def claim(kind: int, name: str, begin: int, end: int) -> bytes:
    """A struct mprun_tensor of core/wire/protocol.h with its name."""
    text = name.encode()
    return struct.pack("=QQII", begin, end, kind, len(text)) + text


def replace(value: Any, references: dict[Any, Any]) -> Any:
    """The value with references in place of its tensors."""
    if None in references and not isinstance(value, dict):
        return references[None]
    if isinstance(value, dict):
        return {key: references.get(key, member) if isinstance(key, str) else member for key, member in value.items()}
    return [references.get(index, member) for index, member in enumerate(value)]


def make_file(path: str) -> int:
    """A new file; replaces one that a dead process with this pid has left."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except FileExistsError:
        os.unlink(path)
        return os.open(path, flags, 0o666)


def publish(temporary: str, path: str) -> None:
    """Gives a file its name, unless that is taken; without hard links only the lock prevents a conflict."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise
        os.rename(temporary, path)
    else:
        os.unlink(temporary)


def lock(folder: int) -> None:
    """Waits until no other worker makes a file in the folder; goes on if the file system has no locks."""
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            raise


def explain(error: OSError, file: str, size: int) -> OSError:
    """The same error with a human-readable message: the file, and what to do."""
    message = f"cannot write tensors/{file}: {os.strerror(error.errno or 0)}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        message += f"; all of it takes {size} bytes: free some space there, or choose another place with --output"
    return OSError(error.errno, message)
