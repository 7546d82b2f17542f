"""joblib's Parallel on the workers of mprun: `joblib.parallel_config("mprun")`, before joblib 1.3 parallel_backend."""
from __future__ import annotations

import multiprocessing
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import Any, Callable

from joblib import parallel, register_parallel_backend
from joblib._parallel_backends import AutoBatchingMixin, FallbackToBackend, ParallelBackendBase, SequentialBackend

from mprun.executor import Executor


class MprunBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """One mprun for each Parallel, or for each `with Parallel(...)`. Keywords are fields of a job's spec."""

    supports_timeout = True
    supports_inner_max_num_threads = True
    supports_retrieve_callback = True  # of joblib 1.3

    def __init__(
        self, nesting_level: int | None = None, inner_max_num_threads: int | None = None, **fields: Any
    ) -> None:
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads)
        self.fields = fields
        self.executor: Executor | None = None

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None:
            return 1
        return n_jobs if n_jobs > 0 else max(parallel.cpu_count() + 1 + n_jobs, 1)

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:
        n_jobs = self.effective_n_jobs(n_jobs)
        if n_jobs == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        self.parallel = parallel
        threads = {} if self.inner_max_num_threads is None else {"threads_per_worker": self.inner_max_num_threads}
        self.executor = Executor(n_jobs, **{"initializer": register_joblib, **threads, **self.fields})
        return n_jobs

    def submit(self, func: Callable[[], Any], callback: Callable[[Any], Any] | None = None) -> Future[Any]:
        assert self.executor is not None
        future = self.executor.submit(func)
        future.get = partial(wait_for, future)  # type: ignore[attr-defined]
        if callback is not None:
            future.add_done_callback(callback)
        return future

    apply_async = submit  # its name before joblib 1.4

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        return out.result()

    def terminate(self) -> None:
        if self.executor is not None:
            self.executor.shutdown()
            self.executor = None
        self.reset_batch_stats()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        if self.executor is not None:
            self.executor.kill()
            self.executor = None
        if ensure_ready:
            self.configure(n_jobs=self.parallel.n_jobs, parallel=self.parallel)


class TaskTimeout(multiprocessing.TimeoutError, TimeoutError):
    """Of both, since joblib raises the one of multiprocessing."""


def wait_for(future: Future[Any], timeout: float | None = None) -> Any:
    """The result, as multiprocessing's AsyncResult.get gives it."""
    try:
        return future.result(timeout)
    except FutureTimeout as error:
        if not future.done():
            raise TaskTimeout("the task has not ended in time") from error
        raise


def register_joblib() -> None:
    """Makes the backend "mprun" known to joblib; n_jobs, and fields of a job's spec, are its parameters."""
    register_parallel_backend("mprun", MprunBackend)
