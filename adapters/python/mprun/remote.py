"""The worker's side of mprun.map, mprun.Executor and the joblib backend: the script of such a job.

The caller's side is job_pipe.py. Inputs are JSON: a number, true, false or null is itself, a string is a pickle, and a
list [NUMBER, BYTES, ...] is the file inputs/NUMBER, which has a pickle and then its buffers. Values are likewise, but
buffers become tensors of the task. What a task raises is kept in errors/TASK-ATTEMPT.
"""
from __future__ import annotations

import base64
import io
import mmap
import os
import pickle
import sys
from typing import Any, Callable

from mprun.pickling import dumps, is_plain
from mprun.tensors import SAFETENSORS_DTYPES
from mprun.user_code import user_traceback

#: Buffers begin at multiples of this, as arrays want it.
ALIGNMENT = 64

folder = ""
function: Callable[[Any], Any]
prepare_worker: Callable[[], Any] | None = None


class Copied(io.RawIOBase):
    """What this process prints: it goes to the worker's log as in any job, and a copy to the caller, who shows it."""

    def __init__(self, log: int, copy: int) -> None:
        self.log, self.copy = log, copy

    @staticmethod
    def stream(stream: Any, name: str) -> Any:
        """A stream like that one, which is copied to a FIFO of that name."""
        raw = Copied(stream.fileno(), os.open(os.path.join(folder, name), os.O_WRONLY))
        return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=True)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.log

    def write(self, data: Any) -> int:
        written = os.write(self.log, data)
        rest = memoryview(data)[:written]
        try:
            while rest:
                rest = rest[os.write(self.copy, rest) :]
        except OSError:  # the caller has gone
            pass
        return written


def load() -> None:
    """`setup` of the job: imports what the caller could import, then loads the function and runs the caller's setup."""
    global folder, function, prepare_worker
    folder = os.path.dirname(sys.argv[0])
    sys.stdout, sys.stderr = Copied.stream(sys.stdout, "stdout"), Copied.stream(sys.stderr, "stderr")
    with open(os.path.join(folder, "function.pickle"), "rb") as file:
        job = pickle.load(file)
    ours = [entry for entry in sys.path if entry not in job["path"] and entry != folder]
    sys.path[:] = [*job["path"], *ours]
    sys.argv[:] = job["argv"]
    if job["preparation"]:
        from multiprocessing import spawn

        spawn.prepare(job["preparation"])
    function, setup, prepare_worker = pickle.loads(job["functions"])
    if setup is not None:
        setup()


def prepare() -> None:
    """`worker_setup` of the job."""
    if prepare_worker is not None:
        prepare_worker()


def call(item: Any) -> Any:
    """The job's function: one call of the caller's function."""
    try:
        value = function(decode(item))
        try:
            return encode(value)
        except Exception as error:
            error.add_note(f"mprun: this is about the result of the task, of type {type(value).__qualname__}")
            raise
    except BaseException as error:
        keep(error)
        raise


def run_item(task: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]) -> Any:
    """The function of an Executor: each task brings its own."""
    called, args, kwargs = task
    return called(*args, **kwargs)


def run_args(called: Callable[..., Any], item: Any) -> Any:
    return called(*item)


def run_kwargs(called: Callable[..., Any], item: Any) -> Any:
    return called(**item)


def decode(item: Any) -> Any:
    if isinstance(item, str):
        return pickle.loads(base64.b64decode(item))
    if not isinstance(item, list):
        return item
    number, *sizes = item
    with open(os.path.join(folder, "inputs", str(number)), "rb") as file:
        memory = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))  # a task may write into its input
    parts, begin = [], 0
    for size in sizes:
        parts.append(memory[begin : begin + size])
        begin += size + -size % ALIGNMENT
    return pickle.loads(parts[0], buffers=parts[1:])


def encode(value: Any) -> Any:
    if is_plain(value):
        return value
    buffers: list[pickle.PickleBuffer] = []
    text = base64.b64encode(dumps(value, buffers)).decode()
    if not buffers:
        return text
    names = ["result" if i == 0 else f"result{i}" for i in range(len(buffers))]
    sizes = {name: buffer.raw().nbytes for name, buffer in zip(names, buffers)}
    return {"pickle": text, "sizes": sizes, **{name: array_of(buffer) for name, buffer in zip(names, buffers)}}


def array_of(buffer: pickle.PickleBuffer) -> Any:
    """The buffer as the array it belongs to, in C order, so that the tensor file of the run has its dtype and shape. As
    bytes if either kind of tensor file lacks the dtype, or would have it in another byte order than the pickle says."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return buffer.raw()
    try:
        array = numpy.asarray(memoryview(buffer))
    except (TypeError, ValueError):
        return buffer.raw()
    if array.dtype.str not in SAFETENSORS_DTYPES:
        return buffer.raw()
    return array if array.flags.c_contiguous else array.T


def keep(error: BaseException) -> None:
    """Keeps the exception for the caller; where it cannot be pickled, mprun's own record of it has to do."""
    name = f"{os.environ.get('MPRUN_TASK')}-{os.environ.get('MPRUN_ATTEMPT')}"
    try:
        data = dumps((error, user_traceback(error)))
        with open(os.path.join(folder, "errors", name), "wb") as file:
            file.write(data)
    except Exception:
        pass
