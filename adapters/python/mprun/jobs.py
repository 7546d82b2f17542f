"""mprun.map and mprun.run: jobs started by a Python program. Both run the program mprun and read what it writes."""
from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from concurrent.futures import CancelledError
from functools import partial
from itertools import islice
from typing import Any, Callable, Iterable, Iterator

from mprun import errors, remote
from mprun.job_pipe import VIEW, JobPipe, message_of, program, settings
from mprun.tensor_reader import TensorReader

#: Inputs of known number are sent this many at once.
BATCH = 64


def map(
    function: Callable[..., Any], inputs: Iterable[Any], *, processes: int | str | None = None,
    start_method: str | None = None, retries: int | dict[str, Any] | None = None, call: str = "item",
    setup: Callable[[], Any] | None = None, worker_setup: Callable[[], Any] | None = None,
    return_exceptions: bool = False, **fields: Any,
) -> list[Any]:
    """Calls the function with every input in worker processes; returns the results in the order of the inputs.

    Inputs may be an iterator of any length: no more are taken than workers need soon. Arrays and tensors of 64 KiB or
    more come back from files that are mapped, and go there likewise. Other keywords are fields of a job's spec.

    The first task that fails stops the others; its exception is raised, with the traceback of the worker as __cause__.
    With `return_exceptions` all tasks run, and exceptions stand in the place of results; CancelledError in that of a
    task that was not run, because the job was to stop early (max_failures). Raises SpecError for fields that mprun
    refuses, JobError if mprun ended early, and what pickle raises.
    """
    results: list[Any] = []
    failed: dict[int, BaseException] = {}

    def fill(size: int) -> None:
        while len(results) < size:
            results.append(CancelledError("the job stopped before this task was run"))

    def on_end(task: int, value: Any, error: BaseException | None, _: float) -> None:
        fill(task + 1)
        results[task] = value if error is None else error
        if error is not None:
            failed[task] = error
        progress.count()

    calls: dict[str, Callable[[Any], Any]] = {"item": function, "args": partial(remote.run_args, function),
                                              "kwargs": partial(remote.run_kwargs, function)}
    if call not in calls:
        raise errors.SpecError(f"call is {call!r}, allowed: {', '.join(calls)}")
    given = {"processes": processes, "start_method": start_method, "retries": retries,
             "on_error": "continue" if return_exceptions else "stop", **fields}
    progress = Progress(inputs)
    pipe = JobPipe((calls[call], setup, worker_setup), given, on_end, view=is_terminal(sys.stderr))
    try:
        at_once = BATCH if hasattr(inputs, "__len__") else 1  # an iterator may wait for something else meanwhile
        lines = (pipe.encode(item) for item in inputs)
        while (batch := list(islice(lines, at_once))) and pipe.send(batch):
            pass
        pipe.close()
        pipe.join()
    except BaseException:
        pipe.kill()
        raise
    finally:
        progress.finish()
    if failed and not return_exceptions:
        # What it has stopped was cancelled, perhaps with a smaller number.
        raise failed[min(failed, key=lambda task: (isinstance(failed[task], CancelledError), task))]
    if pipe.error is not None and not (pipe.sent == 0 and "the inputs are empty" in str(pipe.error)):
        raise pipe.error
    if failed:
        fill(len(inputs) if hasattr(inputs, "__len__") else pipe.sent)
    return results


class Progress:
    """The line of a notebook that says how far a map is; on a terminal mprun's own view says it."""

    def __init__(self, inputs: Any) -> None:
        self.total = f" of {len(inputs)}" if hasattr(inputs, "__len__") else ""
        self.done = 0
        self.next = 0.0 if "ipykernel" in sys.modules else math.inf  # when it is shown again

    def count(self) -> None:
        """A task has ended."""
        self.done += 1
        if time.monotonic() >= self.next:
            self.next = time.monotonic() + 0.5
            self.show()

    def show(self, end: str = "") -> None:
        print(f"\rmprun: {self.done}{self.total} tasks", end=end, file=sys.stderr, flush=True)

    def finish(self) -> None:
        if 0 < self.next < math.inf:
            self.show("\n")


def is_terminal(stream: Any) -> bool:
    """Whether what mprun writes to its standard error appears where the stream does."""
    try:
        return stream.fileno() == 2 and stream.isatty()
    except (AttributeError, OSError, ValueError):
        return False


class Run:
    """A run that has ended: what its run directory holds."""

    def __init__(self, directory: str, exit_code: int) -> None:
        self.directory, self.exit_code = directory, exit_code
        with open(os.path.join(directory, "summary.json"), encoding="utf-8") as file:
            self.summary: dict[str, Any] = json.load(file)

    def __repr__(self) -> str:
        return f"<mprun.Run {self.directory}: exit code {self.exit_code}, {self.counts}>"

    @property
    def counts(self) -> dict[str, int]:
        """Tasks by what became of them: total, ok, failed, cancelled, not_run, retried."""
        return self.summary["counts"]

    @property
    def hangs(self) -> list[dict[str, Any]]:
        """The hang reports, as in mprun(1), FILES."""
        return errors.hangs(self.directory)

    def lines(self) -> Iterator[dict[str, Any]]:
        """The lines of results.jsonl, see mprun-job(5)."""
        with open(os.path.join(self.directory, "results.jsonl"), encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)

    @property
    def results(self) -> dict[int, Any]:
        """The values of the tasks that succeeded, by number. Tensors are numpy arrays over the files that hold them;
        they may be written to, which changes no file."""
        tensors = TensorReader(self.directory)
        return {line["task"]: tensors.restore(line["value"]) if line.get("tensors") else line["value"]
                for line in self.lines() if line["status"] == "ok"}

    @property
    def failures(self) -> dict[int, BaseException]:
        """The exceptions of the other tasks, by number; those of Python are made again by name and message."""
        return {line["task"]: errors.of_result(line, self.directory) for line in self.lines() if line["status"] != "ok"}

    def report(self) -> str:
        """What `mprun report` says about the run."""
        words = [program(), "report", self.directory]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def run(job: str | os.PathLike[str] | dict[str, Any], **options: Any) -> Run:
    """Runs a job: a file, or a dict with the same fields, whose paths are relative to the current directory. Options
    are fields, too, and beat those of the job. A Python job that names no interpreter gets that of the caller.

    Failed tasks are in the Run. Raises SpecError if the job is wrong, JobError if it could not be launched or mprun is
    at fault. The run directory is output.dir, by default one below ./runs.
    """
    own = fields_of(job)
    output = {**own.get("output", {}), **(options.get("output") or {})}
    directory = output.get("dir") or new_directory(job)
    options["output"] = {**(options.get("output") or {}), "dir": directory}
    if sys.version_info >= (3, 11) and ".py" in str({**own, **options}.get("script")):
        options.setdefault("python", own.get("python", sys.executable))
    view = is_terminal(sys.stderr)
    words = ["-q", *settings(options), "-" if isinstance(job, dict) else os.fspath(job)]
    try:
        spec = json.dumps(job) if isinstance(job, dict) else None
    except TypeError as error:
        raise errors.SpecError(str(error)) from None
    with subprocess.Popen([program(), *(VIEW if view else []), *words], text=True, errors="replace",
                          stdin=None if spec is None else subprocess.PIPE,
                          stderr=None if view else subprocess.PIPE) as process:
        try:
            _, said = process.communicate(spec)
        except BaseException:
            process.terminate()
            raise
    code = process.returncode
    if code in (2, 3, 125) or code < 0:
        raise errors.of_end(code, message_of(words, spec) if code == 2 else said or "")
    return Run(os.path.abspath(directory), code)


def fields_of(job: Any) -> dict[str, Any]:
    """The fields of a job; none where mprun will say what is wrong with it."""
    try:
        if not isinstance(job, dict):
            with open(job, encoding="utf-8") as file:
                job = json.load(file)
        return {**job, "output": dict(job.get("output") or {})}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def new_directory(job: Any) -> str:
    """runs/JOB/TIME, with a number if that is taken."""
    name = "job" if isinstance(job, dict) else os.path.splitext(os.path.basename(os.fspath(job)))[0]
    base = os.path.join("runs", name, time.strftime("%Y%m%d-%H%M%S"))
    number, found = 1, base
    while os.path.exists(found):
        number += 1
        found = f"{base}-{number}"
    return found
