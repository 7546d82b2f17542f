"""A running mprun that is given tasks by a pipe and answers by another: what mprun.map and mprun.Executor stand on."""
from __future__ import annotations

import base64
import codecs
import io
import json
import os
import pickle
import selectors
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from functools import partial
from typing import Any, Callable

from mprun import errors, pickling, remote, tensor_reader

#: Given a task's number, its value or its exception, and the seconds for which it ran.
OnEnd = Callable[[int, Any, "BaseException | None", float], None]

SCRIPT = "from mprun.remote import call, load, prepare\n"
#: Variables by which mprun would take itself for one of several that share the tasks: here each has tasks of its own.
LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_ARRAY_TASK_ID", "SLURM_STEP_ID")
#: The options by which mprun shows its view and still no summary of a run whose directory goes away.
VIEW = ["--progress", "always"]
#: As much of standard error is kept for messages, in characters.
MOST_WORDS = 64 * 1024


def program() -> str:
    """The path of the mprun that this package belongs to: of a build tree, an installation or a wheel."""
    parent = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    # PREFIX/lib/mprun/python, or PREFIX/lib/python3.N/site-packages of a wheel; the other is pip's --target.
    for prefix in (os.path.normpath(os.path.join(parent, *[os.pardir] * 3)), parent):
        place = os.path.join(prefix, "bin", "mprun")
        if os.access(place, os.X_OK):
            return place
    found = shutil.which("mprun")
    if found is None:
        raise FileNotFoundError("the program mprun is not there, where its package is; install mprun again")
    return found


def settings(fields: dict[str, Any]) -> list[str]:
    """Spec fields as options of mprun; those that are None are left out."""
    words: list[str] = []
    for name, value in fields.items():
        if value is not None:
            try:
                words += ["--set", f"{name}={json.dumps(value)}"]
            except TypeError as error:
                raise errors.SpecError(f"{name}: {error}") from None
    return words


def message_of(words: list[str], text: str | None = None) -> str:
    """What mprun says about a wrong spec. It launched nothing then, so it may be asked again if its message went to the
    terminal."""
    done = subprocess.run([program(), *words], input=text or "", text=True, errors="replace", capture_output=True)
    return done.stderr


def preparation() -> dict[str, Any] | None:
    """What multiprocessing would have a worker do first: import the main script, unless functions go by value, and talk
    to the caller's Managers, if there may be any. None if it is nothing, since it takes the worker an import."""
    by_value = pickling.has_cloudpickle() or not pickling.main_can_be_imported()
    if by_value and "multiprocessing.managers" not in sys.modules:
        return None
    from multiprocessing import spawn

    found = spawn.get_preparation_data("mprun")
    main = () if by_value else ("init_main_from_name", "init_main_from_path", "dir", "orig_dir")
    return {"authkey": bytes(found["authkey"]), **{key: found[key] for key in main if key in found}}


class JobPipe:
    """One mprun. Any thread may send tasks, one at a time; `on_end` is called on a thread of this object, in the order
    of completion, and `on_exit` on the same thread, once, with what ended the job early, if anything did.

    Owns the process, a folder of its own and two threads; close() and join(), or kill(), end all of them.
    """

    def __init__(
        self, functions: tuple[Any, Any, Any], fields: dict[str, Any], on_end: OnEnd,
        on_exit: Callable[[errors.JobError | None], None] = lambda _: None, view: bool = False,
    ) -> None:
        if sys.version_info < (3, 11):
            raise errors.JobError("mprun's workers need Python 3.11 or later; this is %d.%d" % sys.version_info[:2])
        self.on_end, self.on_exit = on_end, on_exit
        self.error: errors.JobError | None = None
        self.sent = self.files = 0
        self.words = ""
        self.ended = threading.Event()
        self.with_files: dict[int, str] = {}  # the input files of tasks on their way
        self.folder = tempfile.mkdtemp(prefix="mprun-")
        self.outputs: dict[str, Output] = {}
        try:
            self.start(functions, fields, view)
        except BaseException:
            for output in self.outputs.values():
                output.end()
                output.reader.close()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def start(self, functions: tuple[Any, Any, Any], fields: dict[str, Any], view: bool) -> None:
        job = {"path": [entry or os.getcwd() for entry in sys.path], "argv": sys.argv, "preparation": preparation(),
               "functions": pickling.dumps(functions)}
        script = os.path.join(self.folder, "mprun_calls.py")
        for name in ("inputs", "errors"):
            os.mkdir(os.path.join(self.folder, name))
        self.outputs = {name: Output(os.path.join(self.folder, name), view) for name in ("stdout", "stderr")}
        with open(script, "w", encoding="utf-8") as text:
            text.write(SCRIPT)
        with open(os.path.join(self.folder, "function.pickle"), "wb") as file:
            pickle.dump(job, file)
        output = {"dir": os.path.join(self.folder, "run"), **(fields.get("output") or {})}
        self.run_dir = os.path.abspath(output["dir"])
        fixed = {"setup": "load", "worker_setup": "prepare", "inputs": {"jsonl": "-"}, "order": "completion",
                 "output": {**output, "results": "-"}}
        if any(name in os.environ for name in LAUNCHERS):
            fixed["shard"] = "1/1"
            self.run_dir = os.path.join(self.run_dir, "shards", "1")
        defaults = {"durability": "none", "python": sys.executable or None}
        self.command = ["-q", *settings({**defaults, **fields, **fixed}), f"{script}:call"]
        self.process = subprocess.Popen(
            [program(), *(VIEW if view else []), *self.command], bufsize=0, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=None if view else subprocess.PIPE,
        )
        _alive.add(self)
        self.reader = threading.Thread(target=self.read, name="mprun-results", daemon=True)
        self.listener = threading.Thread(target=self.listen, name="mprun-messages", daemon=True)
        self.listener.start()
        self.reader.start()

    def encode(self, value: Any) -> str:
        """The line for an input, as remote.py reads it; large buffers go to a file. Raises what pickle raises."""
        if pickling.is_plain(value):
            return json.dumps(value)
        buffers: list[Any] = []
        data = pickling.dumps(value, buffers)
        if not buffers:
            return f'"{base64.b64encode(data).decode()}"'
        self.files += 1
        parts = [memoryview(data), *(buffer.raw() for buffer in buffers)]
        with open(os.path.join(self.folder, "inputs", str(self.files)), "wb") as file:
            for part in parts:
                file.write(part)
                file.write(b"\0" * (-part.nbytes % remote.ALIGNMENT))
        return json.dumps([self.files, *(part.nbytes for part in parts)])

    def send(self, lines: list[str]) -> bool:
        """Sends inputs, which get the next numbers; waits while mprun has enough. False if the job is over."""
        for number, line in enumerate(lines, self.sent):
            if line[0] == "[":
                self.with_files[number] = line[1 : line.index(",")]
        self.sent += len(lines)
        data = memoryview("".join(f"{line}\n" for line in lines).encode())
        try:
            while data:
                data = data[self.process.stdin.write(data) :]  # type: ignore[union-attr, index]
        except (OSError, ValueError):  # it has ended, or was closed
            return False
        return True

    def close(self) -> None:
        """No more inputs will come: mprun finishes those that it has."""
        try:
            self.process.stdin.close()  # type: ignore[union-attr]
        except OSError:
            pass

    def is_reading(self) -> bool:
        """Whether this is the thread of `on_end` and `on_exit`, which can wait for nothing that the job does."""
        return threading.current_thread() is self.reader

    def join(self) -> None:
        """Waits until mprun has ended, and `on_end` and `on_exit` know everything; in one of these it does nothing."""
        if not self.is_reading():
            self.ended.wait()  # Thread.join() takes a thread for ended once Ctrl-C has interrupted it

    def kill(self) -> None:
        """Ends the job now, and waits for it: mprun leaves no process."""
        self.close()
        if self.process.poll() is None:
            self.process.terminate()
        self.join()

    def listen(self) -> None:
        """The thread of what mprun says, and of what workers print."""
        with selectors.DefaultSelector() as selector:
            for name, output in self.outputs.items():
                selector.register(output.reader, selectors.EVENT_READ, partial(output.show, name))
            if self.process.stderr is not None:
                selector.register(self.process.stderr, selectors.EVENT_READ, self.remember)
            while selector.get_map():
                for key, _ in selector.select():
                    data = os.read(key.fd, MOST_WORDS)
                    if data:
                        key.data(data)
                    else:
                        selector.unregister(key.fileobj)
                        key.fileobj.close()

    def remember(self, data: bytes) -> None:
        self.words = (self.words + data.decode(errors="replace"))[-MOST_WORDS:]

    def read(self) -> None:
        """The thread of results."""
        fault: BaseException | None = None
        tensors = tensor_reader.TensorReader(self.run_dir)
        with io.BufferedReader(self.process.stdout) as stdout:  # type: ignore[arg-type]
            for line in stdout:
                try:
                    self.tell(json.loads(line), tensors)
                except BaseException as error:  # on_end is at fault; mprun must not wait for a reader
                    fault = fault or error
        code = self.process.wait()
        for output in self.outputs.values():
            output.end()
        self.listener.join()
        _alive.discard(self)
        self.close()
        if fault is not None:
            self.error = errors.JobError(f"a result could not be taken: {fault!r}")
        elif code not in (0, 1):
            said = message_of(self.command) if code == 2 and not self.words else self.words
            self.error = errors.of_end(code, said)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.on_exit(self.error)
        del self.on_end, self.on_exit  # of the owner, which refers to this: no cycle is left
        self.ended.set()

    def tell(self, result: dict[str, Any], tensors: tensor_reader.TensorReader) -> None:
        task = result["task"]
        if task in self.with_files:
            os.unlink(os.path.join(self.folder, "inputs", self.with_files.pop(task)))
        value, error = None, None
        if result["status"] == "ok":
            try:
                value = decode(result["value"], tensors)
            except BaseException as raised:  # SystemExit, too: the thread goes on
                error = errors.without_frames(raised)
        else:
            kept = os.path.join(self.folder, "errors", f"{task}-{result['attempt']}")
            error = errors.of_result(result, self.run_dir, kept)
        self.on_end(task, value, error, result.get("seconds") or 0.0)


class Output:
    """A FIFO by which workers send what they write to a standard stream, beside their logs; see remote.Copied."""

    def __init__(self, path: str, view: bool) -> None:
        os.mkfifo(path, 0o600)
        self.writer = os.open(path, os.O_RDWR)  # or it would end with each worker
        self.reader = open(path, "rb", buffering=0)
        self.before = "\r\x1b[K" if view else ""  # the line of mprun's view goes, and comes again
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def show(self, name: str, data: bytes) -> None:
        try:
            stream = getattr(sys, name)
            stream.write(self.before + self.decoder.decode(data))
            stream.flush()
        except (AttributeError, OSError, ValueError):  # there is none, or it is closed
            pass

    def end(self) -> None:
        """No more will be written; what has been is still shown."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1


def decode(value: Any, tensors: tensor_reader.TensorReader) -> Any:
    """What the worker's function returned; see remote.encode()."""
    if isinstance(value, str):
        return pickle.loads(base64.b64decode(value))
    if not isinstance(value, dict):
        return value
    buffers = [tensors.buffer(value[name], size) for name, size in value["sizes"].items()]
    return pickle.loads(base64.b64decode(value["pickle"]), buffers=buffers)


#: Those whose mprun runs; a process that the caller forks must not hold their pipes open.
_alive: weakref.WeakSet[JobPipe] = weakref.WeakSet()


def _forget() -> None:
    for pipe in list(_alive):
        for output in pipe.outputs.values():
            output.end()
        for stream in (pipe.process.stdin, pipe.process.stdout, pipe.process.stderr):
            if stream is not None:
                stream.close()
    _alive.clear()


os.register_at_fork(after_in_child=_forget)
