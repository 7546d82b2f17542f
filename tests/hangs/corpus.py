"""The hang corpus: one table of the cases, and what mprun is expected to report for each.

The programs are in cases/. In each, one comment `hangs here` marks the call that waits for what is
stuck (the join), and `blocks here` a line where another thread waits in vain.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

import pytest

import harness
from compiled import CASES, INTERPRETERS, build, libraries_for, why_not_importable, why_not_installed

HANGS_HERE = "hangs here"
BLOCKS_HERE = "blocks here"
STALL_SECONDS = 3  # for runs whose hang shows only by waiting

# Of other Pythons mprun does not read what a loop does between two waits.
READS_LOOPS = (3, 11) <= sys.version_info[:2] <= (3, 15) and not sysconfig.get_config_var("Py_GIL_DISABLED")
NO_LOOPS = "what its loop asks is not read in this Python"


@dataclass(frozen=True)
class Case:
    """One program that hangs."""

    program: str  # its file in cases/
    verdicts: tuple[str, ...]  # any of these is right
    causes: tuple[str, ...]  # any of these; none: the case is not about its cause
    joins: tuple[str, ...] = ()  # how the name of the join may end; none: there is no join
    number: int | None = None  # in the list of reported bugs; none: another variant
    compiler: str | None = None  # for a C program
    start_method: str | None = None  # for a program that takes one; each is a case of its own
    # Its state once it hangs: "still", "stopped", "moving": only main is at rest,
    # "polling": main too wakes up again and again,
    # "spinning": as "moving", and Python cannot report where its threads are, "working": as "moving",
    # or "beside": main moves and the rest does not. Of the last two mprun ends nothing: their work goes on.
    rest: str = "still"
    adapters: str = ""  # MPRUN_ADAPTERS, where an adapter would cure it
    reads_loops: bool = False  # whether mprun must read what a loop of it does
    mended: tuple[str, str] | None = None  # "Python" or a package, and the first version with which it does not hang

    @property
    def name(self) -> str:
        """The name of its test."""
        stem = Path(self.program).stem
        return "-".join(filter(None, (stem, self.compiler, self.start_method)))

    @property
    def source(self) -> Path:
        return CASES / self.program

    @property
    def only_main_rests(self) -> bool:
        """Whether other threads or processes of it go on."""
        return self.rest in ("moving", "spinning", "working")

    @property
    def is_ended(self) -> bool:
        """Whether mprun ends it once it has reported it."""
        return self.rest not in ("working", "beside")

    def line_of(self, mark: str) -> int | None:
        """The line of the program that has this mark, counted from 1."""
        lines = self.source.read_text(encoding="utf-8").splitlines()
        marked = [number for number, line in enumerate(lines, 1) if mark in line]
        assert len(marked) <= 1, f"{self.program} has more than one line marked {mark!r}"
        return marked[0] if marked else None

    def why_not_here(self) -> str:
        """Why the case does not hang here; "" if it does."""
        if missing := why_not_installed(self.program, self.compiler) or why_not_importable(self.source):
            return missing
        if self.reads_loops and not READS_LOOPS:
            return NO_LOOPS
        if self.mended is None:
            return ""
        package, version = self.mended
        here = platform.python_version() if package == "Python" else metadata.version(package)
        return f"mended in {package} {version}; here is {here}" if _numbers(here) >= _numbers(version) else ""

    def is_python(self) -> bool:
        return self.source.suffix == ".py"

    def argv(self, folder: Path) -> list[str]:
        """The command; builds it in `folder` first if need be."""
        libraries = libraries_for(self.program, folder)
        if self.compiler is None:
            methods = [self.start_method] if self.start_method else []
            return [INTERPRETERS[self.source.suffix], str(self.source), *methods, *libraries]
        return [str(build(self.program, folder, compiler=self.compiler)), *libraries]

    def environment(self, folder: Path) -> dict[str, str]:
        """`folder` is for temporary files that it would leave when it is killed."""
        adapters = {"MPRUN_ADAPTERS": self.adapters} if self.adapters else {}
        return {**harness.library_settings(folder), **adapters}


def _numbers(version: str) -> tuple[int, ...]:
    """Major and minor number."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def _by_each_method(case: Case) -> list[Case]:
    """By fork, and by the forkserver, the default since Python 3.14."""
    return [replace(case, start_method=method) for method in ("fork", "forkserver")]


DEADLOCK = ("deadlock",)
PERHAPS_PARTIAL = ("deadlock", "partial-deadlock")
STALLED = ("stalled",)


def of_ruby() -> tuple[str, ...]:
    """Threads of Ruby 3.3 and later wait in futexes, which proves a hang; a timer of older ones wakes up now and then."""
    if shutil.which("ruby") is None:
        return STALLED
    ask = ["ruby", "-e", "print RUBY_VERSION"]
    version = subprocess.run(ask, capture_output=True, text=True, timeout=60, check=True).stdout
    return DEADLOCK if _numbers(version) >= (3, 3) else STALLED


RUBY_STUCK = of_ruby()
ORPHANED = ("orphaned-lock",)
PROCESS_JOIN = ("Process.join",)
SPAWN = ("spawn", "start_processes", "ProcessContext.join")
THREAD_JOIN = ("Thread.join",)
POOL_JOIN = ("Pool.join",)
POOL_MAP = ("Pool.map", "Result.get")
DATALOADER = ("_BaseDataLoaderIter.__next__",)
DIED = ("worker-died",)
LOCK_CYCLE = ("lock-cycle",)
AT_FORK = ("lock-held-at-fork",)
LOST_THREAD = ("thread-lost-at-fork",)
OPENMP = ("openmp-after-fork",)
NEVER_NOTIFIED = ("never-notified",)
POLLS = ("polls-in-vain",)
PIPE_CYCLE = ("pipe-cycle",)
EDGE_MISSED = ("edge-missed",)
FIFO = ("fifo-not-opened",)
NO_WAKER = ("no-waker",)
OWNER_ENDED = ("mutex-owner-ended",)
NO_LIBGOMP = "-libgomp"

_REPORTED = [
    Case("pool_openmp.py", DEADLOCK, OPENMP, POOL_JOIN, 1, adapters=NO_LIBGOMP),
    Case("fork_openmp.c", DEADLOCK, OPENMP, ("waitpid",), 2, "gcc", adapters=NO_LIBGOMP),
    Case(
        "forkserver_openmp.py",
        DEADLOCK,
        OPENMP,
        PROCESS_JOIN,
        3,
        adapters=NO_LIBGOMP,
    ),
    Case("two_libgomps.c", DEADLOCK, OPENMP, ("waitpid",), 4, "gcc", adapters=NO_LIBGOMP),
    Case("pool_worker_killed.py", DEADLOCK, DIED, POOL_JOIN, 5),
    *_by_each_method(Case("pool_worker_exits.py", DEADLOCK, DIED, POOL_JOIN, 6)),
    Case("pool_keyboard_interrupt.py", DEADLOCK, DIED, POOL_MAP, 6),
    Case("pool_unpicklable_result.py", DEADLOCK, ("pool-helper-lost",), POOL_JOIN, 7),
    Case("second_pool.py", DEADLOCK, ("pool-helper-lost",), POOL_JOIN),
    Case("queue_join_before_get.py", DEADLOCK, ("queue-not-drained",), PROCESS_JOIN, 8),
    Case("queue_join_under_forkserver.py", DEADLOCK, ("queue-not-drained",), PROCESS_JOIN),
    Case("lock_held_at_fork.py", PERHAPS_PARTIAL, AT_FORK, PROCESS_JOIN, 9),
    Case(
        "lock_held_at_fork_busy.py", ("partial-deadlock",), AT_FORK, PROCESS_JOIN, 9, rest="moving"
    ),
    Case("mutex_held_at_fork.c", ("orphaned-lock", "deadlock"), AT_FORK, ("waitpid",), 10),
    Case("lock_cycle.c", DEADLOCK, LOCK_CYCLE, ("pthread_join",), 11),
    Case("mp_lock_holder_killed.py", DEADLOCK, DIED, PROCESS_JOIN, 12),
    Case("barrier_short.py", DEADLOCK, ("barrier-short",), PROCESS_JOIN, 13),
    Case("queue_get_killed.py", DEADLOCK, DIED, ("Queue.get",), 14),
    Case("executor_in_forked_child.py", PERHAPS_PARTIAL, LOST_THREAD, PROCESS_JOIN, 15),
    Case("asyncio_in_forked_child.py", PERHAPS_PARTIAL, LOST_THREAD, PROCESS_JOIN, 16),
    Case(
        "asyncio_busy_in_forked_child.py",
        ("partial-deadlock",),
        LOST_THREAD,
        PROCESS_JOIN,
        16,
        rest="moving",
    ),
    Case("pipe_never_closed.py", DEADLOCK, ("pipe-never-closed",), PROCESS_JOIN, 17),
    Case("pool_imap_blocked_generator.py", DEADLOCK, NEVER_NOTIFIED, POOL_JOIN, 18),
    Case("child_stopped.py", STALLED, ("stopped",), PROCESS_JOIN, 19, rest="stopped"),
    Case("gil_held_by_c_call.py", DEADLOCK, ("gil-held",), THREAD_JOIN, 20, rest="moving"),
    Case("gil_held_by_join.py", ORPHANED, ("gil-held",), ("pthread_join",), rest="moving"),
    *_by_each_method(Case("pool_initializer_raises.py", STALLED, ("respawn-loop",), POOL_MAP, 21, rest="moving")),
    Case(
        "spawn_ignores_sigterm.py",
        STALLED,
        ("ignores-termination",),
        SPAWN,
        22,
        mended=("torch", "2.6"),
    ),
    *_by_each_method(
        Case("process_ignores_sigterm.py", STALLED, ("ignores-termination",), PROCESS_JOIN, 22, rest="moving")
    ),
    Case("import_at_fork.py", PERHAPS_PARTIAL, AT_FORK, PROCESS_JOIN, 23),
    Case("hang_at_exit.py", DEADLOCK, (), ("_exit_function",), 24),
]

_VARIANTS = [
    Case("pool_map_killed.py", DEADLOCK, DIED, POOL_MAP),
    Case("future_waits_in_own_pool.py", DEADLOCK, ("task-waits-in-own-pool",), ("Future.result",)),
    Case(
        "popen_wait_unread_pipe.py", DEADLOCK, ("queue-not-drained",), ("Popen.wait",)
    ),
    Case(
        "popen_grandchild_keeps_pipe.py",
        DEADLOCK,
        ("pipe-kept-by-grandchild",),
        ("Popen.communicate",),
    ),
    Case("file_lock_held_at_fork.py", PERHAPS_PARTIAL, AT_FORK, PROCESS_JOIN),
    Case("executor_shutdown_stuck_worker.py", DEADLOCK, NEVER_NOTIFIED, ("Executor.shutdown",)),
    Case("thread_waits_for_queue.py", DEADLOCK, NEVER_NOTIFIED, THREAD_JOIN),
    Case("queue_join_forgotten_task.py", DEADLOCK, NEVER_NOTIFIED, ("Queue.join",)),
    Case("event_never_set.py", DEADLOCK, NEVER_NOTIFIED, PROCESS_JOIN),
    Case("condition_never_notified.py", DEADLOCK, NEVER_NOTIFIED, ("Condition.wait",)),
    Case(
        "manager_lock_holder_killed.py",
        (*PERHAPS_PARTIAL, "stalled"),
        DIED,
        rest="moving",
    ),
    Case(
        "waitpid_before_write.py",
        DEADLOCK,
        ("input-never-closed",),
        ("waitpid",),
    ),
    Case("thread_at_exit.py", DEADLOCK, ("exit-handler-waits",), ("_shutdown",)),
    Case("dataloader_lock_at_fork.py", DEADLOCK, AT_FORK, DATALOADER),
    Case("dataloader_second_batch.py", DEADLOCK, AT_FORK, DATALOADER),
    Case("dataloader_second_epoch.py", DEADLOCK, AT_FORK, DATALOADER),
    Case("dataloader_library_thread.py", DEADLOCK, AT_FORK, DATALOADER),
    Case("dataloader_lock_cycle.py", DEADLOCK, LOCK_CYCLE, DATALOADER),
    Case("dataloader_unpicklable_batch.py", DEADLOCK, PIPE_CYCLE, DATALOADER),
    Case("dataloader_inner_pool.py", DEADLOCK, LOST_THREAD, DATALOADER),
    Case("dataloader_queue_without_producer.py", DEADLOCK, PIPE_CYCLE, DATALOADER),
    Case("dataloader_worker_finished.py", DEADLOCK, PIPE_CYCLE, DATALOADER),
    # Sometimes its other thread waits instead of spinning.
    Case("pool_callback_raises.py", STALLED + DEADLOCK, ("pool-helper-lost",), POOL_JOIN, rest="spinning"),
    Case("grpc_in_forked_child.py", STALLED, (*LOST_THREAD, "gil-held"), (*POOL_MAP, "BaseContext.Pool"), rest="moving"),
    Case("pool_worker_killed_beside_thread.py", STALLED, DIED, POOL_MAP, rest="moving"),
    Case("pool_callback_asks_pool.py", STALLED + DEADLOCK, ("task-waits-in-own-pool",), POOL_MAP, rest="moving"),
    Case("pool_callback_wants_lock.py", STALLED, LOCK_CYCLE, POOL_JOIN, rest="spinning"),
    Case("pool_callback_fills_queue.py", STALLED, ("queue-not-drained",), POOL_JOIN, rest="spinning"),
    Case("pool_setstate_raises.py", STALLED, ("pool-helper-lost",), POOL_MAP, rest="spinning"),
    Case("tcp_both_read.py", DEADLOCK, PIPE_CYCLE),
    Case("tcp_both_write.py", DEADLOCK, PIPE_CYCLE),
    Case("threads_read_from_each_other.py", DEADLOCK, PIPE_CYCLE),
    Case("dataloader_beside_service.py", PERHAPS_PARTIAL, AT_FORK, DATALOADER, rest="moving"),
    Case("handler_beside_worker.py", STALLED, LOCK_CYCLE, PROCESS_JOIN, rest="moving"),
    Case("shell_beside_monitor.sh", PERHAPS_PARTIAL, LOCK_CYCLE, rest="moving"),
    Case("bash_beside_monitor.bash", PERHAPS_PARTIAL, LOCK_CYCLE, rest="moving"),
    Case("poll_beside_worker.py", STALLED, ("pipe-never-closed",), PROCESS_JOIN, rest="moving", reads_loops=True),
    Case("pair_beside_worker.py", STALLED, PIPE_CYCLE, rest="working"),
    Case("stuck_beside_idle.py", STALLED, LOCK_CYCLE, PROCESS_JOIN, rest="moving"),
    Case("busy_closes_pipe.py", PERHAPS_PARTIAL, ("pipe-never-closed",), PROCESS_JOIN, rest="moving"),
    Case("mutex_twice_before_alarm.c", DEADLOCK, LOCK_CYCLE, compiler="gcc"),
    Case("output_captured_by_pipe.py", DEADLOCK, ("queue-not-drained",)),
    Case("handler_waits_for_semaphore.c", DEADLOCK, NEVER_NOTIFIED, compiler="gcc"),
    Case("sigwait_for_reader.c", DEADLOCK, ("input-never-closed",), compiler="gcc"),
    Case("rust_condvar_never_notified.rs", DEADLOCK, NEVER_NOTIFIED, ("pthread_join",), compiler="rustc"),
    Case("torch_future_never_set.py", DEADLOCK, NEVER_NOTIFIED, ("Future.wait",)),
    *_by_each_method(Case("tcp_not_accepted.py", DEADLOCK, ("input-never-closed",), PROCESS_JOIN)),
    Case("zmq_reply_never_sent.py", STALLED, NEVER_NOTIFIED),
    Case("zmq_ipc_reply_never_sent.py", STALLED, NO_WAKER, PROCESS_JOIN),
    Case("zmq_message_unsent.py", STALLED, NO_WAKER, rest="moving"),  # it tries to connect again and again
    Case("unix_not_accepted.py", DEADLOCK, ("input-never-closed",), PROCESS_JOIN),
    Case("queue_polled_forever.py", STALLED, ("input-never-closed",), PROCESS_JOIN, rest="moving"),
    Case("collective_left_out.py", STALLED, ("collective-mismatch",), SPAWN, rest="moving"),
    Case("collective_other.py", STALLED, ("collective-mismatch",), SPAWN, rest="moving"),
    Case("async_collectives_differ.py", STALLED, ("collective-mismatch",), SPAWN, rest="moving"),
    Case("irecv_first.py", STALLED, ("collective-mismatch",), SPAWN, rest="moving"),
    Case("recv_of_other_rank.py", STALLED, ("collective-mismatch",), SPAWN, rest="moving"),
    Case("rank_never_came.py", STALLED, ("rank-missing",), SPAWN, rest="moving"),
    Case("store_key_never_set.py", STALLED, ("store-key-missing",), SPAWN, rest="moving"),
    Case("rank_stopped.py", STALLED, ("stopped",), SPAWN, rest="moving"),
    Case("ddp_uneven_batches.py", STALLED, ("collective-mismatch",), SPAWN, rest="moving"),
    Case("mpi_receives_first.py", STALLED, ("message-never-sent",), rest="spinning"),
    Case("mpi_barrier_left_out.py", STALLED, ("message-never-sent",), rest="spinning"),
    Case("manager_event_never_set.py", DEADLOCK, NEVER_NOTIFIED, PROCESS_JOIN, rest="moving"),  # its server polls
    Case("manager_lock_held_by_waiter.py", DEADLOCK, LOCK_CYCLE, PROCESS_JOIN, rest="moving"),  # its server polls
    Case("threads_join_each_other.py", DEADLOCK, LOCK_CYCLE, THREAD_JOIN),
    Case("server_close_keeps_connection.py", DEADLOCK, ("input-never-closed",), ("server_close",)),
    Case("asyncio_result_in_loop.py", DEADLOCK, ("task-waits-in-own-pool",), ("Future.result",)),
    Case(
        "asyncio_grandchild_keeps_pipe.py",
        DEADLOCK,
        ("pipe-kept-by-grandchild",),
        ("asyncio.runners.run",),
        mended=("Python", "3.14"),
    ),
    Case("eventlet_queue_without_producer.py", STALLED, NO_WAKER, ("eventlet.hubs.hub.BaseHub.run",)),
    Case("trio_channel_not_closed.py", STALLED, NEVER_NOTIFIED, ("trio._core._run.run",)),
    Case("cached_property_lock.py", DEADLOCK, LOCK_CYCLE, THREAD_JOIN, mended=("Python", "3.12")),
    Case("import_waits_for_thread.py", DEADLOCK, LOCK_CYCLE, THREAD_JOIN),
    Case("handler_takes_lock.py", STALLED, LOCK_CYCLE),
    Case("cuda_lock.py", STALLED, LOCK_CYCLE, rest="moving"),
    Case("handler_locks_mutex.c", DEADLOCK, LOCK_CYCLE, compiler="gcc"),
    Case("handler_of_library.py", DEADLOCK, LOCK_CYCLE, ()),
    Case("io_uring_idle.c", DEADLOCK, NO_WAKER),
    Case("sysv_locks_crossed.c", STALLED, NO_WAKER, compiler="gcc"),
    Case("sysv_lock_holder_killed.c", STALLED, DIED, compiler="gcc"),
    Case("sysv_reply_of_wrong_type.c", STALLED, NO_WAKER, ("waitpid",), compiler="gcc"),
    Case("mq_join_before_receive.py", STALLED, NO_WAKER, PROCESS_JOIN),
    Case("mq_two_orders.c", STALLED, NO_WAKER, compiler="gcc"),
    Case("make_reads_fifo.sh", DEADLOCK, FIFO),
    Case("fifo_two_orders.py", DEADLOCK, FIFO, ()),
    Case("fifos_in_shell.sh", DEADLOCK, FIFO),
    Case("coprocess.bash", DEADLOCK, PIPE_CYCLE),
    Case("shell_waits.sh", DEADLOCK, LOCK_CYCLE),
    Case("pause_without_child.c", STALLED, ("child-signal-missed",)),
    Case("node_unread_output.py", DEADLOCK, ("queue-not-drained",), ("Popen.wait",)),
    Case("node_child_waits.js", DEADLOCK, PIPE_CYCLE),
    Case("asyncio_executor_in_forked_child.py", DEADLOCK, LOST_THREAD, ("waitpid",)),
    Case("uvloop_executor_in_forked_child.py", DEADLOCK, LOST_THREAD, ("waitpid",)),
    Case("uvloop_event_never_set.py", DEADLOCK, NEVER_NOTIFIED, ("asyncio.runners.run",)),
    Case("asyncio_lock_twice.py", DEADLOCK, NEVER_NOTIFIED, ("asyncio.runners.run",)),
    Case("static_variable_at_fork.cc", PERHAPS_PARTIAL, AT_FORK, ("waitpid",), compiler="g++"),
    Case("own_thread_pool_in_child.cc", DEADLOCK, LOST_THREAD, ("waitpid",), compiler="g++"),
    Case("fork_handler_twice.c", ("deadlock", "orphaned-lock"), LOCK_CYCLE),
    Case("ruby_child_waits.rb", RUBY_STUCK, (*PIPE_CYCLE, "input-never-closed")),  # the second since Ruby 3.3
    Case("java_monitor_cycle.java", STALLED, LOCK_CYCLE, rest="moving"),
    Case("java_lock_cycle.java", STALLED, NEVER_NOTIFIED, rest="moving"),
    Case("java_notify_lost.java", STALLED, NEVER_NOTIFIED, rest="moving"),
    Case("java_latch_short.java", STALLED, NEVER_NOTIFIED, rest="moving"),
    Case("java_executor_left.java", STALLED, ("exit-handler-waits",), rest="moving"),
    Case("java_child_output.java", STALLED, ("queue-not-drained",), rest="moving"),
    Case("unread_output.c", DEADLOCK, ("queue-not-drained",), ("waitpid",), compiler="gcc"),
    Case("pty_unread_output.py", DEADLOCK, ("queue-not-drained",), ("waitpid",)),
    Case("pty_without_input.py", DEADLOCK, ("input-never-closed",), ("waitpid",)),
    Case("pty_both_read.py", DEADLOCK, PIPE_CYCLE),
    Case("gevent_thread_pool_in_child.py", DEADLOCK, LOST_THREAD, PROCESS_JOIN),
    Case("gevent_child_input.py", DEADLOCK, PIPE_CYCLE),
    Case("filelock_in_child.py", STALLED, (*LOCK_CYCLE, *POLLS), PROCESS_JOIN, rest="moving"),
    Case("sigpipe_default.py", DEADLOCK, AT_FORK, PROCESS_JOIN),
    Case("preexec_lock.py", DEADLOCK, AT_FORK, ("subprocess.run",)),
    Case("polite_worker.py", STALLED, AT_FORK, PROCESS_JOIN),
    # Since Python 3.13, threads wait for a lock elsewhere than in the lock: not seen whether the parent has it, too.
    Case("stacks_on_signal.py", DEADLOCK, (*AT_FORK, *LOCK_CYCLE), PROCESS_JOIN),
    Case("child_locks_twice.py", DEADLOCK, LOCK_CYCLE, PROCESS_JOIN),
    Case("jit_fork_in_child.py", DEADLOCK, LOST_THREAD, ("waitpid",)),
    Case("executor_worker_killed.py", DEADLOCK, DIED, ("Executor.shutdown",), mended=("Python", "3.12")),
    Case("executor_used_by_its_worker.py", DEADLOCK, AT_FORK, ("Executor.map",)),
    Case("executor_callback_waits.py", DEADLOCK, ("task-waits-in-own-pool",), ()),
    Case("simple_queue_full.py", DEADLOCK, ("queue-not-drained",), PROCESS_JOIN),
    Case("joinable_queue_worker_raises.py", DEADLOCK, DIED, ("JoinableQueue.join",)),
    Case("stderr_not_read.py", DEADLOCK, PIPE_CYCLE, ()),
    Case("asyncio_wait_unread_pipe.py", DEADLOCK, ("queue-not-drained",), ("asyncio.runners.run",)),
    Case("value_lock_left.py", DEADLOCK, LOCK_CYCLE, PROCESS_JOIN),
    Case("mp_lock_held_by_waiter.py", DEADLOCK, LOCK_CYCLE, ("Future.result",)),
    Case("two_pipes_read_first.pl", DEADLOCK, PIPE_CYCLE),
    Case("joinable_queue_without_getter.py", DEADLOCK, NEVER_NOTIFIED, ("JoinableQueue.join",)),
    Case("queue_without_producers.py", DEADLOCK, ("pipe-never-closed",), ("Queue.get",)),
    Case("flock_in_shell.py", DEADLOCK, LOCK_CYCLE, ("Popen.wait",)),
    Case("thread_pool_over_fork.c", DEADLOCK, LOST_THREAD, ("waitpid",)),
    Case("condition_destroyed_over_fork.c", DEADLOCK, AT_FORK, ("waitpid",)),
    Case("thread_lock_twice.py", DEADLOCK, LOCK_CYCLE, ()),
    Case("thread_lock_cycle.py", DEADLOCK, LOCK_CYCLE, THREAD_JOIN),
    Case("join_with_lock.py", DEADLOCK, LOCK_CYCLE, THREAD_JOIN),
    Case("flock_cycle.py", DEADLOCK, LOCK_CYCLE, PROCESS_JOIN),
    Case("flock_twice.c", DEADLOCK, LOCK_CYCLE),
    Case("open_file_lock_twice.c", DEADLOCK, LOCK_CYCLE),
    Case("rwlock_upgrade.c", DEADLOCK, LOCK_CYCLE, ("pthread_join",)),
    Case("rwlock_read_twice.c", DEADLOCK, LOCK_CYCLE, ("futex",)),
    Case("join_with_mutex.c", DEADLOCK, LOCK_CYCLE, ("pthread_join",)),
    Case("constructor_joins_loader.py", DEADLOCK, LOCK_CYCLE, ("CDLL.__init__",)),
    Case("call_once_in_itself.cc", DEADLOCK, LOCK_CYCLE, ("pthread_join",), compiler="g++"),
    Case("static_variable_needs_thread.cc", DEADLOCK, LOCK_CYCLE, ("pthread_join",), compiler="g++"),
    Case("rust_mutex_twice.rs", DEADLOCK, LOCK_CYCLE, ("pthread_join",), compiler="rustc"),
    Case("rust_rwlock_read_twice.rs", DEADLOCK, LOCK_CYCLE, ("futex",), compiler="rustc"),
    Case("queue_logs_into_itself.py", DEADLOCK, LOCK_CYCLE),
    Case("gevent_native_lock.py", DEADLOCK, LOCK_CYCLE, ()),
    Case("asyncio_blocks_its_loop.py", STALLED, NEVER_NOTIFIED, ("Queue.get",)),
    Case("asyncio_set_by_thread.py", DEADLOCK, ("loop-not-woken",), ("asyncio.runners.run",)),
    Case("xdist_lock_twice.py", DEADLOCK, LOCK_CYCLE, (), rest="polling"),
    Case("heartbeat_beside_lock_cycle.py", STALLED, LOCK_CYCLE, (), rest="moving", reads_loops=True),
    Case("monitor_beside_nested_task.py", STALLED, ("task-waits-in-own-pool",), rest="moving", reads_loops=True),
    Case("progress_beside_dead_worker.py", STALLED, NEVER_NOTIFIED, ("queue.Queue.join",), rest="moving", reads_loops=True),
    Case("elapsed_shown_until_child_ends.py", STALLED, ("queue-not-drained",), ("waitpid",), rest="polling", reads_loops=True),
    Case("popen_wait_repeated.py", STALLED, ("queue-not-drained",), ("Popen.wait",), rest="polling", reads_loops=True),
    Case("queue_polled_without_producer.py", STALLED, ("pipe-never-closed",), ("Queue.get",), rest="polling"),
    Case("future_polled_forever.py", STALLED, ("task-waits-in-own-pool", *POLLS), rest="polling"),
    Case("counter_polled_forever.py", STALLED, POLLS, rest="polling"),
    Case("results_counted_forever.py", STALLED, POLLS, rest="polling"),
    Case("event_polled_forever.py", STALLED, POLLS, rest="polling"),
    Case("empty_queue_polled.py", STALLED, POLLS, rest="polling"),
    Case("attribute_polled_forever.py", STALLED, POLLS, rest="polling"),
    Case("item_of_dead_thread.py", STALLED, (*NEVER_NOTIFIED, *POLLS), rest="polling"),
    Case("poll_before_read.py", STALLED, ("queue-not-drained", *POLLS), rest="polling"),
    Case("alive_before_get.py", STALLED, ("queue-not-drained", *POLLS), rest="polling"),
    Case("file_store_rank_missing.py", STALLED, ("rank-missing",), ("init_process_group",), rest="polling"),
    Case("flag_of_dead_child.py", STALLED, POLLS, rest="polling"),
    Case("tensor_not_shared.py", STALLED, POLLS, PROCESS_JOIN, rest="moving"),
    Case("sqlite_own_transaction.py", STALLED, LOCK_CYCLE, rest="polling"),
    Case("epoll_edge_missed.c", DEADLOCK, EDGE_MISSED, compiler="gcc"),
    Case("epoll_edge_missed_tcp.py", STALLED, EDGE_MISSED),
    Case("epoll_one_shot.py", DEADLOCK, EDGE_MISSED),
    Case("accept_of_closed_socket.py", STALLED, ("closed-while-waiting",), THREAD_JOIN),
    Case("recv_of_closed_socket.c", STALLED, ("closed-while-waiting",), ("pthread_join",), compiler="gcc"),
    Case("http_request_to_self.py", DEADLOCK, ("server-asks-itself",), ("urlopen",)),
    Case("listener_accept_child_dead.py", STALLED, DIED),
    Case("ruby_pipe_not_closed.rb", RUBY_STUCK, ("pipe-never-closed",)),
    Case("mpi_receives_first.c", STALLED, ("message-never-sent",), compiler="mpicc", rest="spinning"),
    Case(
        "torchrun_first_node_missing.py",
        STALLED,
        ("rank-missing",),
        rest="polling",
        mended=("torch", "2.4"),  # torchrun needs libuv since then, which Debian's torch is without
    ),
    Case("new_group_left_out.py", STALLED, ("collective-mismatch",), SPAWN, rest="moving", mended=("torch", "2.6")),
    Case("rpc_shutdown_left_out.py", STALLED, ("collective-mismatch",), SPAWN, rest="spinning"),
    Case(
        "rpc_in_rpc.py",
        STALLED,
        ("task-waits-in-own-pool",),
        SPAWN,
        rest="spinning",
        mended=("torch", "2.14"),  # Debian's has no TensorPipe any more
    ),
    Case("bounded_queue_of_dataset.py", DEADLOCK, ("queue-not-drained",), DATALOADER),
    Case("unpicklable_item.py", DEADLOCK, ("pipe-never-closed",), ("Queue.get",)),
    Case("jobserver_token.sh", DEADLOCK, ("input-never-closed",)),
    Case("pool_task_reads_pipe.py", DEADLOCK, NEVER_NOTIFIED, POOL_MAP),
    Case("ruby_popen_reads_first.rb", RUBY_STUCK, PIPE_CYCLE),
    Case("fortran_lock_left.f90", DEADLOCK, LOCK_CYCLE, compiler="gfortran"),
    Case("pthread_barrier_short.c", DEADLOCK, ("barrier-short",), ("pthread_join",), compiler="gcc"),
    Case("semaphore_never_posted.c", DEADLOCK, NEVER_NOTIFIED, ("waitpid",), compiler="gcc"),
    Case("semaphores_in_file_crossed.c", STALLED, NEVER_NOTIFIED, compiler="gcc"),
    Case("mutex_in_file_left.c", STALLED, OWNER_ENDED, compiler="gcc"),
    Case("static_pool_at_exit.cc", DEADLOCK, ("exit-handler-waits",), ("pthread_join",), compiler="g++"),
    Case("logging_handler_joins.py", DEADLOCK, LOCK_CYCLE, THREAD_JOIN),
    Case("atexit_joins_daemon.py", DEADLOCK, ("exit-handler-waits",), THREAD_JOIN),
    Case("pipe_other_end_kept.py", DEADLOCK, ("pipe-never-closed",), ("_ConnectionBase.recv",)),
    Case("ruby_mutex_in_read.rb", RUBY_STUCK, PIPE_CYCLE),
    Case("java_class_init_cycle.java", STALLED, LOCK_CYCLE, rest="moving"),
    Case("java_parallel_in_init.java", STALLED, LOCK_CYCLE, rest="moving"),
    Case("semaphore_poster_killed.c", DEADLOCK, DIED),
    Case("shared_mutex_owner_killed.c", ("orphaned-lock", "deadlock"), DIED),
    Case("mutex_owner_ended.c", ("orphaned-lock", "deadlock"), ()),
    Case("mutex_locked_twice.c", ("orphaned-lock", "deadlock"), LOCK_CYCLE, ("pthread_join",)),
    Case("lock_cycle_beside_main.c", ORPHANED, LOCK_CYCLE, rest="beside"),
    Case("join_with_mutex_beside.cc", ORPHANED, LOCK_CYCLE, compiler="g++", rest="beside"),
    Case("mutex_owner_ended_beside_main.c", ORPHANED, OWNER_ENDED, rest="beside"),
    Case("mutex_owner_ended_main_joins.c", ORPHANED, OWNER_ENDED, ("pthread_join",), rest="moving"),
    Case("mutex_held_at_fork_busy.c", ORPHANED, AT_FORK, ("pthread_mutex_lock",), rest="moving"),
    Case("condition_lost_wakeup.c", DEADLOCK, NEVER_NOTIFIED, ("pthread_join",)),
    Case("two_pipes_read_first.c", DEADLOCK, PIPE_CYCLE),
    Case("php_stderr_not_read.php", DEADLOCK, PIPE_CYCLE),
    Case("guile_pipe_both_ways.scm", DEADLOCK, PIPE_CYCLE),
    Case("lua_popen_fifo.lua", DEADLOCK, FIFO),
    Case("timerfd_not_set.c", DEADLOCK, (*NO_WAKER, *NEVER_NOTIFIED), compiler="gcc"),
    Case("xargs_reads_fifo.sh", STALLED, ("input-never-closed",), ("waitpid",)),
    Case("go_pipe_not_read.go", STALLED, ("queue-not-drained",), compiler="go"),
    Case("go_channel_without_reader.go", STALLED, NO_WAKER, compiler="go"),
    Case("critical_held_at_fork.c", PERHAPS_PARTIAL, (*AT_FORK, *OPENMP), ("waitpid",), None, "gcc"),
    Case("openmp_barrier_in_branch.c", DEADLOCK, ("barrier-short",), ("futex",), compiler="gcc"),
]


def _with_compilers(cases: list[Case]) -> list[Case]:
    """Each C program without OpenMP twice: built by gcc and by clang."""
    built = []
    for case in cases:
        if case.program.endswith(".c") and case.compiler is None:
            built += [replace(case, compiler=compiler) for compiler in ("gcc", "clang")]
        else:
            built.append(case)
    return built


ALL = _with_compilers(_REPORTED + _VARIANTS)
HERE = [case for case in ALL if not case.why_not_here()]  # those that hang with the installed versions
each_case = pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.skipif(case not in HERE, reason=case.why_not_here())) for case in ALL],
    ids=lambda case: case.name,
)
