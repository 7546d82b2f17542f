"""mprun.Executor: concurrent.futures on the workers of one mprun."""
from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from concurrent.futures import Executor as BaseExecutor
from concurrent.futures import Future
from functools import partial
from typing import Any, Callable, Iterable, Iterator

from mprun import errors, remote
from mprun.job_pipe import JobPipe

#: Tasks beyond the number of workers are sent ahead as far as they run for this time together, in seconds.
AHEAD_SECONDS = 0.05
#: What a task takes at the least, with what is done for it.
SHORTEST_SECONDS = 1e-5


class Session:
    """The state of an Executor, and the thread that feeds its mprun. The threads refer to this and not to the Executor,
    so that one that nobody needs any more is collected, and then ends as by shutdown(wait=False)."""

    def __init__(self, fields: dict[str, Any], worker_setup: Callable[[], Any] | None) -> None:
        self.fields, self.worker_setup = fields, worker_setup
        self.changed = threading.Condition()
        self.waiting: deque[tuple[Future[Any], str]] = deque()
        self.admitted: list[str] = []  # to be sent by the feeder
        self.running: dict[int, Future[Any]] = {}  # admitted or sent, by number
        self.tasks = 0  # that are or were running
        self.pipe: JobPipe | None = None
        self.feeder: threading.Thread | None = None
        self.error: errors.JobError | None = None
        self.closed = False
        self.ended = 0  # tasks
        self.usual_seconds = 0.0  # that they ran, the last ones more than others

    def submit(self, task: tuple[Any, ...]) -> Future[Any]:
        future: Future[Any] = Future()
        with self.changed:
            self.check_open()
            pipe = self.pipe or self.begin()
        try:
            line = pipe.encode(task)
        except (Exception, SystemExit) as error:
            future.set_exception(errors.without_frames(error))
            return future
        with self.changed:
            self.check_open()  # again: that took its time
            self.waiting.append((future, line))
            self.admit()
        return future

    def check_open(self) -> None:
        if self.error is not None:
            message = f"no more tasks can be given to this Executor: {self.error}"
            raise errors.JobError(message, self.error.exit_code)
        if self.closed:
            raise RuntimeError("cannot schedule new futures after shutdown")

    def begin(self) -> JobPipe:
        functions = (remote.run_item, None, self.worker_setup)
        pipe = self.pipe = JobPipe(functions, self.fields, self.on_end, self.on_exit)
        self.feeder = threading.Thread(target=self.feed, args=(pipe,), name="mprun-tasks", daemon=True)
        self.feeder.start()
        _sessions.add(self)
        return pipe

    def room(self) -> int:
        """How many tasks may be sent now. Those that are sent cannot be cancelled any more, so it is few more than
        there are workers, unless tasks are short, and have been for a while."""
        short = int(AHEAD_SECONDS * self.workers() / max(self.usual_seconds, SHORTEST_SECONDS))
        return self.workers() + 1 + min(short, 2 * self.ended) - len(self.running)

    def workers(self) -> int:
        return int(self.fields["processes"])

    def admit(self) -> None:
        """Lets tasks run as long as there is room; the lock is held."""
        while self.waiting and self.room() > 0:
            future, line = self.waiting.popleft()
            if future.set_running_or_notify_cancel():
                self.running[self.tasks] = future
                self.tasks += 1
                self.admitted.append(line)
        if self.admitted or self.is_over():
            self.changed.notify()

    def feed(self, pipe: JobPipe) -> None:
        """The thread that sends tasks."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.error or self.admitted or self.is_over())
                lines, self.admitted = self.admitted, []
            if self.error or not lines:
                break
            pipe.send(lines)
        pipe.close()

    def is_over(self) -> bool:
        return self.closed and not self.waiting

    def on_end(self, task: int, value: Any, error: BaseException | None, seconds: float) -> None:
        with self.changed:
            future = self.running.pop(task)
            self.ended += 1
            self.usual_seconds += (seconds - self.usual_seconds) / min(self.ended, 8)
            self.admit()
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)

    def on_exit(self, error: errors.JobError | None) -> None:
        """mprun has ended: what has no result yet gets none."""
        with self.changed:
            left = [*self.running.values(), *(future for future, _ in self.waiting)]
            if error is None and (left or not self.closed):
                error = errors.JobError("mprun ended before the task did", 0)
            self.error = error
            self.running.clear()
            self.waiting.clear()
            self.changed.notify()
        for future in left:
            if future.running() or future.set_running_or_notify_cancel():
                future.set_exception(errors.JobError(str(error), error.exit_code))  # type: ignore[union-attr]

    def close(self, wait: bool, cancel: bool) -> None:
        with self.changed:
            self.closed = True
            cancelled = [future for future, _ in self.waiting] if cancel else []
            if cancel:
                self.waiting.clear()
            self.changed.notify()
        for future in cancelled:
            future.cancel()
            future.set_running_or_notify_cancel()
        feeder, pipe = self.feeder, self.pipe
        if wait and feeder is not None and pipe is not None and not pipe.is_reading():
            feeder.join()
            pipe.join()
            self.feeder = self.pipe = None


class Executor(BaseExecutor):
    """Calls functions in worker processes; use it as concurrent.futures.ProcessPoolExecutor.

    `max_workers`, or `processes`: their number, by default one for each usable CPU. `initializer` is called with
    `initargs` in every worker after it started. Other keywords are fields of a job's spec, such as start_method,
    retries, limits. Workers start with the first task.

    A future gets the exception of its task, with the worker's traceback as __cause__; WorkerDied, with the signal and
    the worker's last words, if its worker died, and Hung, with cause and cure, if it could never have moved again. The
    other tasks go on with new workers. JobError, which is a BrokenProcessPool, says that mprun itself has ended.
    """

    def __init__(
        self, max_workers: int | None = None, mp_context: Any = None, initializer: Callable[..., Any] | None = None,
        initargs: tuple[Any, ...] = (), *, max_tasks_per_child: int | None = None, processes: int | str | None = None,
        **fields: Any,
    ) -> None:
        count = max_workers if max_workers is not None else processes
        if count is None or count == "auto":
            count = len(os.sched_getaffinity(0))
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"max_workers must be greater than 0, or None: found {count!r}")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        if mp_context is not None:
            fields.setdefault("start_method", mp_context.get_start_method())
        if max_tasks_per_child is not None:
            fields["limits"] = {"tasks_per_worker": max_tasks_per_child, **(fields.get("limits") or {})}
        setup = partial(initializer, *initargs) if initializer is not None else None
        self._session = Session({"processes": count, **fields}, setup)
        self._end = weakref.finalize(self, self._session.close, wait=False, cancel=False)
        self._end.atexit = False  # _finish() does that

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedules fn(*args, **kwargs). A task that cannot be pickled fails: its future has the exception."""
        return self._session.submit((fn, args, kwargs))

    def map(
        self, fn: Callable[..., Any], *iterables: Iterable[Any], chunksize: int = 1, **options: Any
    ) -> Iterator[Any]:
        """As Executor.map of concurrent.futures. `chunksize` has no effect: mprun hands out short tasks in chunks."""
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        return super().map(fn, *iterables, **options)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """No more tasks; those that run are finished, and with `cancel_futures` others are cancelled. Waits for the end
        of mprun, which leaves no process, unless `wait` is false or this is the callback of a future."""
        self._end.detach()
        self._session.close(wait, cancel_futures)

    def kill(self) -> None:
        """Ends all tasks now; the futures of those that had not ended get JobError."""
        session = self._session
        session.close(wait=False, cancel=True)
        if session.pipe is not None:
            session.pipe.kill()


_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


def _finish() -> None:
    """At the exit of the interpreter, as in concurrent.futures: what was submitted is done first."""
    for session in list(_sessions):
        session.close(wait=True, cancel=False)


def _disown() -> None:
    """Context: child after fork. The threads of the sessions are its parent's, and may have held their locks."""
    for session in list(_sessions):
        session.changed = threading.Condition()
        session.feeder = session.pipe = None
        session.error = errors.JobError("it belongs to another process, make one in this process")
    _sessions.clear()


threading._register_atexit(_finish)  # type: ignore[attr-defined]
os.register_at_fork(after_in_child=_disown)
