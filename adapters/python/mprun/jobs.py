"""mprun.map and mprun.run: jobs started by a Python program. Both run the program mprun and read what it writes."""
from __future__ import annotations

import sys
from typing import Any, Callable, Iterable

from mprun import remote
from mprun.job_pipe import JobPipe


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
    With `return_exceptions` all tasks run, and exceptions stand in the place of results. Raises SpecError for fields that
    mprun refuses, JobError if mprun ended early, and what pickle raises.
    """
    results: list[Any] = []
    failed: dict[int, BaseException] = {}

    def on_end(task: int, value: Any, error: BaseException | None) -> None:
        while len(results) <= task:
            results.append(None)
        results[task] = value if error is None else error
        if error is not None:
            failed[task] = error
        progress.show(len(results))

    called = function if call == "item" else remote.Spread(function, call)
    given = {"processes": processes, "start_method": start_method, "retries": retries,
             "on_error": "continue" if return_exceptions else "stop", **fields}
    progress = Progress()
    pipe = JobPipe((called, setup, worker_setup), given, on_end, view=progress.by_mprun)
    try:
        for item in inputs:
            if not pipe.send([pipe.encode(item)]):
                break
        pipe.close()
        pipe.join()
    except BaseException:
        pipe.kill()
        raise
    finally:
        progress.finish()
    if failed and not return_exceptions:
        raise first_of(failed)
    if pipe.error is not None:
        raise pipe.error
    return results


def first_of(failed: dict[int, BaseException]) -> BaseException:
    """Of the failed tasks the first one that was not merely cancelled."""
    from concurrent.futures import CancelledError

    own = [task for task, error in failed.items() if not isinstance(error, CancelledError)]
    return failed[min(own or failed)]


class Progress:
    """How far a map is: on a terminal mprun's own view, in a notebook a line of ours, elsewhere nothing."""

    def __init__(self) -> None:
        stream = sys.stderr
        try:
            self.by_mprun = stream is not None and stream.fileno() == 2 and stream.isatty()
        except (AttributeError, OSError, ValueError):
            self.by_mprun = False
        self.in_notebook = "ipykernel" in sys.modules
        self.shown = 0.0

    def show(self, done: int) -> None:
        if not self.in_notebook:
            return
        import time

        if time.monotonic() - self.shown >= 0.5:
            self.shown = time.monotonic()
            print(f"\rmprun: {done} results", end="", file=sys.stderr, flush=True)

    def finish(self) -> None:
        if self.in_notebook and self.shown:
            print(file=sys.stderr)
