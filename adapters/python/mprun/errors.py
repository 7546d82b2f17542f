"""The exceptions of mprun.map, run and Executor: what became of a job, and of a task that did not end with a result."""
from __future__ import annotations

import builtins
import json
import os
import pickle
import sys
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from concurrent.futures.process import _RemoteTraceback as RemoteTraceback  # type: ignore[attr-defined]
from typing import Any

from mprun import user_code


class JobError(BrokenProcessPool):
    """mprun ended before all tasks did, or could not start. `exit_code` is that of mprun, as in mprun(1)."""

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class SpecError(JobError, ValueError):
    """The job's spec is wrong (exit code 2): the message is mprun's."""


class TaskError(Exception):
    """A task failed by no exception that could be made again. `kind` is the type in results.jsonl, `log` what the
    worker wrote last to its standard error."""

    def __init__(self, message: str, kind: str = "", log: str = "") -> None:
        super().__init__(message + (f"\nThe worker's last words:\n{log}" if log else ""))
        self.kind, self.log = kind, log


class WorkerDied(TaskError, BrokenProcessPool):
    """The worker of the task ended, at each of its attempts; the message names the exit code or the signal."""


class MemoryLimit(TaskError, MemoryError):
    """The worker of the task used more than limits.memory_per_worker."""


class Timeout(TaskError, TimeoutError):
    """The task ran longer than limits.task_seconds."""


class Hung(TaskError):
    """The task could never have moved again, and its worker was ended. `cause` is a name that `mprun explain` knows,
    `cure` says what to do; both are empty where no report says them."""

    cause = cure = ""

    def explain(self, run_dir: str) -> None:
        """Adds cause and cure from the hang report that the message quotes."""
        for report in reversed(hangs(run_dir)):
            cause = report.get("cause") or {}
            if cause.get("explanation") and cause["explanation"] in str(self):
                self.cause, self.cure = cause.get("id", ""), cause.get("fix", "")
                self.args = (f"{self}\nCure: {self.cure}",)
                break


def as_cause(trace: str) -> RemoteTraceback:
    """The traceback of a task, for the __cause__ of the exception that the caller gets."""
    return RemoteTraceback(f'\n"""\n{trace}"""')


def without_frames(error: BaseException) -> BaseException:
    """The exception of a future, whose frames would keep alive all that ran when it was raised: they become text."""
    error.__cause__ = as_cause(user_code.user_traceback(error))
    error.__context__ = None
    return error.with_traceback(None)


_BY_KIND = {kind.__name__: kind for kind in (WorkerDied, MemoryLimit, Timeout, Hung)}


def of_result(result: dict[str, Any], run_dir: str, kept: str = "") -> BaseException:
    """The exception for a line of results.jsonl whose status is not ok. `kept`: a file with the exception itself."""
    error = result["error"]
    kind, message, trace = error.get("type", ""), error.get("message", ""), error.get("traceback")
    if result["status"] == "cancelled":
        return CancelledError(message)
    if kept and os.path.exists(kept):
        try:
            with open(kept, "rb") as file:
                raised, trace = pickle.load(file)
            raised.__cause__ = as_cause(trace)
            return raised
        except BaseException:  # it can be pickled, but not made again; it may even exit
            pass
    if trace is None and kind in _BY_KIND:
        found = _BY_KIND[kind](message, kind, error.get("log") or "")
        if isinstance(found, Hung):
            found.explain(run_dir)
        return found
    remade = remake(kind, message)
    if trace:
        remade.__cause__ = as_cause(trace)
    return remade


def remake(kind: str, message: str) -> BaseException:
    """An exception of that name, if it is one of Python's or of a loaded module, and takes a message alone."""
    module, _, name = kind.rpartition(".")
    found = getattr(sys.modules.get(module) if module else builtins, name, None)
    try:
        if isinstance(found, type) and issubclass(found, BaseException):
            return found(message)
    except Exception:
        pass
    return TaskError(f"{kind}: {message}", kind)


def hangs(run_dir: str) -> list[dict[str, Any]]:
    """The hang reports of a run, the first one first."""
    folder = os.path.join(run_dir, "hangs")
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".json") and name[:-5].isdigit()]
    except OSError:
        return []
    found = []
    for name in sorted(names, key=lambda name: int(name[:-5])):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            found.append(json.load(file))
    return found


def of_end(exit_code: int, words: str) -> JobError:
    """The exception for an mprun that ended early; `words`: what it wrote to standard error."""
    told = words.strip()
    if exit_code == 2:
        return SpecError(told.removeprefix("mprun: ") or "the spec is wrong", exit_code)
    ended = f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
    return JobError(f"mprun ended with {ended}" + (f":\n{told}" if told else ""), exit_code)
