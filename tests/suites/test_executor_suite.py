"""CPython's own tests of concurrent.futures, held against mprun.Executor. They come from libpython3.N-testsuite; the
text is CPython's and is not part of this repository. Where mprun.Executor differs on purpose, the test must fail, and
DIFFERS says why; what a user notices of it is also in mprun-python(3)."""

from __future__ import annotations

import contextlib
import functools
import importlib
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import sys
import unittest
from collections.abc import Iterator
from typing import Any

import pytest
from test.support.script_helper import assert_python_ok

import harness

sys.path.append(str(harness.MPRUN_BIN.resolve().parent.parent / "lib/mprun/python"))
import mprun as api  # noqa: E402

#: One module of Python 3.11, several from 3.12 on.
MODULES = ("", ".util", ".executor", ".test_process_pool", ".test_init", ".test_shutdown", ".test_wait",
           ".test_as_completed", ".test_deadlock")  # fmt: skip


def load() -> dict[str, Any]:
    """What CPython's test modules define."""
    name, found = "test.test_concurrent_futures", {}
    pytest.importorskip(name, reason="CPython's tests are not installed (libpython3.N-testsuite)")
    for module in MODULES:
        try:
            found.update(vars(importlib.import_module(name + module)))
        except ModuleNotFoundError:
            continue
    return found


suite = load()

INTERNALS = "it looks at the processes, threads and queues inside ProcessPoolExecutor"
OWN_ERROR = "the future has what unpickling raised, which says what is wrong; the workers are not broken by it"
FORK_IS_SAFE = "max_tasks_per_child is allowed with fork, too, and changes no start method"
#: Test -> why it fails with mprun.Executor.
DIFFERS = {
    "test_killed_child": INTERNALS,
    "test_processes_terminate": INTERNALS,
    "test_saturation": INTERNALS,
    "test_idle_process_reuse_one": INTERNALS,
    "test_idle_process_reuse_multiple": INTERNALS,
    "test_shutdown_deadlock_pickle": INTERNALS,
    "test_max_tasks_per_child": FORK_IS_SAFE,
    "test_max_tasks_per_child_defaults_to_spawn_context": FORK_IS_SAFE,
    "test_error_at_task_unpickle": OWN_ERROR,
    "test_exit_at_task_unpickle": OWN_ERROR,
    "test_error_during_result_unpickle_in_result_handler": OWN_ERROR,
    "test_exit_during_result_unpickle_in_result_handler": OWN_ERROR,
}
#: These make a ProcessPoolExecutor and no executor_type.
OF_PEERS_ONLY = dict.fromkeys(("test_context_manager_shutdown", "test_del_shutdown", "test_shutdown_no_wait"))


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Fails a test that leaves a process. Semaphores of CPython's tests stay until they are collected."""
    yield
    multiprocessing.forkserver._forkserver._stop()  # type: ignore[attr-defined]
    multiprocessing.resource_tracker._resource_tracker._stop()  # type: ignore[attr-defined]
    harness.wait_until(lambda: not harness.living_descendants(), timeout=2)


def run_program(*words: str, **options: Any) -> Any:
    """CPython's, for programs that look for the executor in concurrent.futures."""
    *before, text = words
    load = f"import sys; sys.path += {sys.path!r}; import mprun, multiprocessing, concurrent.futures as f; f.Executor = mprun.Executor\n"
    return assert_python_ok(*before, f"{load}exec({text!r})", **options)


sys.modules[suite["ExecutorShutdownTest"].__module__].assert_python_ok = run_program  # type: ignore[attr-defined]


class Executor(api.Executor):
    """With what the tests read of the state of a ProcessPoolExecutor."""

    made: list[Executor] = []

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.made.append(self)

    @property
    def _broken(self) -> bool:
        return self._session.error is not None

    @property
    def _max_workers(self) -> int:
        return self._session.workers()


class Mixin(suite["ExecutorMixin"]):
    executor_type = Executor

    def tearDown(self) -> None:
        while Executor.made:  # a test that fails leaves its own
            Executor.made.pop().shutdown()
        super().tearDown()


class FailingInitializer(suite.pop("FailingInitializerMixin")):
    """Without the queue, which a worker can only inherit: the exception has the message."""

    def setUp(self) -> None:
        self.executor_kwargs = {"initializer": suite["init_fail"]}
        super(type(self).__mro__[2], self).setUp()

    def _assert_logged(self, msg: str) -> Any:
        return contextlib.nullcontext()


suite["FailingInitializerMixin"] = FailingInitializer


def expected_to_differ(test: Any, reason: str) -> Any:
    """The test, which must fail."""

    @pytest.mark.xfail(reason=reason, strict=True)
    @functools.wraps(test)
    def differs(self: unittest.TestCase) -> None:
        test(self)

    return differs


for method in multiprocessing.get_all_start_methods():
    for name in ("InitializerMixin", "FailingInitializerMixin", "ProcessPoolShutdownTest", "WaitTests", "AsCompletedTests",
                 "ProcessPoolExecutorTest", "ExecutorDeadlockTest"):  # fmt: skip
        tests = suite[name]
        changed = {test: expected_to_differ(getattr(tests, test), why) for test, why in DIFFERS.items()
                   if hasattr(tests, test)}
        title = f"Test_{name.removesuffix('Mixin')}_{method}"
        globals()[title] = type(title, (tests, Mixin, suite["BaseTestCase"]), {"ctx": method, **OF_PEERS_ONLY, **changed})
