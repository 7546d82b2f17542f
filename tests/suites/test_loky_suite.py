"""loky's own tests of its ProcessPoolExecutor, held against mprun.Executor. They come from a checkout of loky that the
variable LOKY_SOURCE names, since neither its wheel nor a package of Debian has them; the text is loky's and is not part
of this repository. Where mprun.Executor differs on purpose, the test must fail, and DIFFERS says why."""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness

sys.path.append(str(harness.MPRUN_BIN.resolve().parent.parent / "lib/mprun/python"))
import mprun as api  # noqa: E402

SOURCE = Path(os.environ.get("LOKY_SOURCE", "/nonexistent"))
if not (SOURCE / "tests/_test_process_executor.py").exists():
    pytest.skip("LOKY_SOURCE names no checkout of loky", allow_module_level=True)
sys.path.insert(0, str(SOURCE))
pytest.importorskip("cloudpickle", reason="loky needs cloudpickle, which is not installed")
mixin = importlib.import_module("tests._executor_mixin")
suite = vars(importlib.import_module("tests._test_process_executor"))
mixin.psutil = None  # it would look for workers among the children of this process

INTERNALS = "it looks at the processes, threads and queues inside loky's executor"
A_PROGRAM = "it starts a program that imports loky's executor"
A_DEATH = "a worker that dies costs the future of its task only, and the other tasks go on"
#: Test -> why it fails with mprun.Executor.
DIFFERS = {
    "test_processes_terminate": INTERNALS,
    "test_processes_terminate_on_executor_gc": INTERNALS,
    "test_processes_crash_handling_after_executor_gc": INTERNALS,
    "test_context_manager_shutdown": INTERNALS,
    "test_del_shutdown": INTERNALS,
    "test_shutdown_no_wait": INTERNALS,
    "test_shutdown_deadlock_pickle": INTERNALS,
    "test_killed_child": INTERNALS,
    "test_interpreter_shutdown": A_PROGRAM,
    "test_hang_issue39205": A_PROGRAM,
    "test_exited_child": A_DEATH,
    "test_shutdown_with_sys_exit_at_pickle": "the future has what pickling raised, and no PicklingError around it",
    "test_shutdown_and_kill_workers": "kill() gives the futures JobError, and cancels those that did not run",
    "test_max_workers_negative": "the message also says what was found",
    "test_traceback": "the cause is CPython's own class of a remote traceback",
    "test_worker_timeout": "workers stay until the executor is shut down",
    "test_serialization": "reducers are those of copyreg, which pickle knows",
    "test_max_depth": "executors may be nested as deep as the machine allows",
    "test_memory_leak_protection": "limits.memory_per_worker ends a worker that uses too much, when it is set",
}
#: Test -> why it does not apply.
LEFT_OUT = {
    "test_no_failure_on_large_data_send": "it needs several GB",
    "test_reference_cycle_collection": "it counts what loky's own garbage collections leave",
}


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Fails a test that leaves an mprun; the Manager and its server stay for the next one."""
    yield
    harness.wait_until(lambda: not [each for each in harness.living_descendants() if each.name == "mprun"], timeout=5)


class Context:
    """A start method, as loky's tests ask for it; an event that tasks may have is one of a Manager."""

    manager: Any = None

    def __init__(self, method: str) -> None:
        self.method = method

    def get_start_method(self) -> str:
        return self.method

    def Event(self) -> Any:  # noqa: N802
        Context.manager = Context.manager or multiprocessing.Manager()
        return Context.manager.Event()


class Executor(api.Executor):
    """With loky's names of parameters, and what the tests read of its state."""

    def __init__(
        self, max_workers: int | None = None, *, context: Any = None, initializer: Any = None, initargs: Any = (),
        env: Any = None, **others: Any,
    ) -> None:  # fmt: skip
        if others:
            raise NotImplementedError(", ".join(others))
        super().__init__(max_workers, context, initializer, initargs, env=env)

    def shutdown(self, wait: bool = True, kill_workers: bool = False, **options: Any) -> None:
        if kill_workers:
            self.kill()
        super().shutdown(wait, **options)

    @property
    def _flags(self) -> Any:
        return types.SimpleNamespace(broken=self._session.error)


class Mixin(mixin.ExecutorMixin):  # type: ignore[misc]
    executor_type = Executor
    worker_count = 2

    def teardown_method(self, method: Any) -> None:
        if getattr(self, "executor", None) is not None:
            self.executor.kill()  # a test that fails may leave a task that waits for ever
            self.executor.shutdown()


def expected_to_differ(test: Any, reason: str) -> Any:
    """The test, which must fail."""

    @pytest.mark.xfail(reason=reason, strict=True)
    @functools.wraps(test)
    def differs(self: Any, *arguments: Any, **options: Any) -> None:
        test(self, *arguments, **options)

    return differs


for start_method in multiprocessing.get_all_start_methods():
    for name in ("ExecutorShutdownTest", "WaitTests", "AsCompletedTests", "ExecutorTest"):
        tests = suite[name]
        changed = {test: expected_to_differ(getattr(tests, test), why) for test, why in DIFFERS.items()
                   if hasattr(tests, test)} | dict.fromkeys(LEFT_OUT)  # fmt: skip
        title = f"Test{name}_{start_method}"
        globals()[title] = type(title, (Mixin, tests), {"context": Context(start_method), **changed})
