"""The controls: programs that are easy to mistake for hangs, and end if they are left alone.

They are in controls/. Each takes the seconds for which it is quiet, where it can choose them,
or waits for what outside.py does.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import harness
import outside
from compiled import (
    COMPILERS,
    CONTROLS,
    INTERPRETERS,
    build,
    libraries_for,
    why_not_importable,
    why_not_installed,
)
from corpus import NO_LOOPS, READS_LOOPS
from outside import Outside

QUIET_SECONDS = 2.5  # well above the second within which a hang is proved
LOCKED_SECONDS = 5  # above the time within which an orphaned lock is proved
STALL_SECONDS = 5  # the lowest limit at which those that run for so long do not count as stalls
REQUESTS = ("event", "worker", "room", "future", "pool", "gate", "child", "server", "exit")
OUTSIDE_SECONDS = 60  # the same for those that wait for the test, however slow this machine makes it


@dataclass(frozen=True)
class Control:
    """One program that prints "done" at its end and exits with 0."""

    program: str  # its file in controls/
    other: type[Outside] = Outside
    more: tuple[str, ...] = ()  # further arguments
    seconds: float | None = QUIET_SECONDS  # None: it takes no such argument
    quiet: float = QUIET_SECONDS  # for how long it waits for the process outside
    compiler: str | None = None  # for a C program that the usual one cannot build
    reads_loops: bool = False  # whether mprun must read what its loop does between two waits
    stall: int = STALL_SECONDS  # above `seconds` where it waits at one place for so long, but for a timer

    @property
    def stall_seconds(self) -> int:
        """The stall limit that they are watched with."""
        return OUTSIDE_SECONDS if self.other.acts else self.stall

    @property
    def name(self) -> str:
        """The name of its test."""
        words = [Path(self.program).stem, *self.more]
        return "-".join([*words, self.other.__name__] if self.other is not Outside else words)

    def why_not_here(self) -> str:
        """Why it cannot be run here; "" if it can."""
        if self.reads_loops and not READS_LOOPS:
            return NO_LOOPS
        return why_not_installed(self.program, self.compiler) or why_not_importable(CONTROLS / self.program)

    def argv(self, folder: Path, argument: str | None) -> list[str]:
        """The command; builds it in `folder` first if need be. `argument`: from outside."""
        source = CONTROLS / self.program
        if source.suffix in COMPILERS:
            command = [str(build(source, folder, compiler=self.compiler or COMPILERS[source.suffix]))]
        else:
            command = [INTERPRETERS[source.suffix], str(source), *libraries_for(self.program, folder)]
        if argument is not None:
            command.append(argument)
        if self.seconds is not None and not self.other.acts:
            command.append(str(self.seconds))
        return [*command, *self.more]


ALL = [
    # A child or a thread that takes its time.
    Control("sleeping_child.py"),
    Control("computing_child.py"),
    Control("communicate.py"),
    Control("child_handler.py"),
    Control("child_outlives_parent.py"),
    Control("vfork_sleep.c"),
    Control("ptraced_child.c"),
    Control("stop_and_continue.py"),
    Control("threads_wait_for_main.py"),
    Control("gil_contention.py"),
    Control("gil_held_for_long.py"),
    Control("gil_wanted_by_joined.py"),
    Control("lock_handed_over.py"),
    Control("cuda_wait.py", seconds=8, more=("main",), stall=10),
    Control("cuda_wait.py", seconds=8, more=("thread",), stall=10),
    Control("cuda_wait.py", seconds=8, more=("callback",), stall=10),
    Control("ping_pong.py"),
    Control("eventfd.py"),
    Control("aio.c"),
    Control("clone_vm.c"),
    Control("userfaultfd.c"),
    Control("sysv_message.c", seconds=4.5),
    Control("ipc_slow_partner.c", seconds=4.5, more=("semaphore",)),
    Control("ipc_slow_partner.c", seconds=4.5, more=("full-queue",)),
    Control("ipc_slow_partner.c", seconds=4.5, more=("posix-queue",)),
    Control("pidfd.py"),
    Control("robust_mutex.c"),
    Control("mutex_held_long.c", seconds=LOCKED_SECONDS),
    Control("mutex_named_after_another.c", seconds=LOCKED_SECONDS, more=("fork",)),
    Control("mutex_named_after_another.c", seconds=LOCKED_SECONDS, more=("raw",)),
    Control("mutex_named_after_another.c", seconds=LOCKED_SECONDS, more=("namespace",)),
    Control("mutex_look_alike.c", seconds=LOCKED_SECONDS, more=("unlocked",)),
    Control("mutex_look_alike.c", seconds=LOCKED_SECONDS, more=("library",)),
    Control("joiner_cancelled.c", seconds=LOCKED_SECONDS),
    Control("native_lock_held.cc", seconds=LOCKED_SECONDS, more=("read-write-lock",)),
    Control("native_lock_held.cc", seconds=LOCKED_SECONDS, more=("once",)),
    Control("native_lock_held.cc", seconds=LOCKED_SECONDS, more=("static-variable",)),
    Control("native_lock_held.cc", seconds=LOCKED_SECONDS, more=("join-with-mutex",)),
    Control("lock_in_recursion.py"),
    Control("lock_in_recursion.py", more=("gevent",)),
    Control("threads_come_and_go.py"),
    Control("descriptor_in_flight.py"),
    Control("fifo_slow_partner.py", seconds=2),
    Control("pty_slow_master.py", seconds=2),
    Control("pty_read_with_limit.py"),
    Control("shell_retries.sh", seconds=8),
    Control("shell_retries.sh", seconds=8, more=("part",)),
    Control("shell_waits.sh", seconds=2),
    Control("shell_waits_for_older.sh", seconds=14, stall=20),
    Control("bash_waits_for_older.bash", seconds=14, stall=20),
    Control("idle_beside_worker.py", seconds=14, more=("wait",), stall=20),
    Control("idle_beside_worker.py", seconds=14, more=("loop",), stall=20),
    Control("node_timer.js"),
    Control("gevent_idle.py"),
    Control("zmq_slow_partner.py", seconds=4.5),
    Control("zmq_late_listener.py", seconds=4.5),
    Control("slow_partner.py", more=("barrier",)),
    Control("partner_late.py", more=("joins",)),
    Control("partner_late.py", more=("reader",)),
    Control("partner_late.py", more=("loop",)),
    Control("partner_late.py", more=("grandchild",)),
    Control("partner_late.py", more=("manager",)),
    Control("slow_partner.py", more=("condition",)),
    Control("slow_partner.py", more=("queue",)),
    Control("slow_partner.py", more=("semaphore",)),
    Control("slow_partner.py", more=("program",)),
    Control("slow_partner.py", more=("accept",)),
    Control("slow_partner.py", more=("task",)),
    Control("ruby_slow_child.rb", seconds=4.5),
    Control("ruby_mutex_held.rb", seconds=4.5),
    Control("bounded_queue_drained_late.py"),
    Control("jobserver_late_token.sh"),
    Control("make_slow_rule.sh", seconds=2),
    Control("flock_slow_holder.sh", seconds=2),
    Control("node_slow_program.js", seconds=2),
    # Pools and servers that are idle.
    Control("idle_pool.py"),
    Control("pool_slow_task.py"),
    Control("pool_slow_callback.py", seconds=10, more=("sleep",), stall=OUTSIDE_SECONDS),
    Control("pool_slow_callback.py", seconds=10, more=("lock",), stall=OUTSIDE_SECONDS),
    Control("pool_slow_callback.py", seconds=10, more=("queue",), stall=OUTSIDE_SECONDS),
    Control("pool_slow_callback.py", seconds=10, more=("alarm",), stall=OUTSIDE_SECONDS),
    Control("pool_slow_callback.py", seconds=10, more=("worker",), stall=OUTSIDE_SECONDS),
    Control("thread_pool_computing.py", seconds=LOCKED_SECONDS),
    Control("short_pools.py"),
    Control("pool_replaces_workers.py", seconds=9, stall=OUTSIDE_SECONDS),
    Control("grpc_slow_server.py", seconds=8, stall=OUTSIDE_SECONDS),
    Control("pool_worker_ends_badly.py", seconds=8, more=("2",), stall=OUTSIDE_SECONDS),
    Control("pool_worker_ends_badly.py", seconds=6, more=("6",), stall=OUTSIDE_SECONDS),
    Control("pool_worker_fails_at_first.py", seconds=2),
    Control("dataloader_slow.py", seconds=1),
    Control("dataloader_idle.py", seconds=1),
    Control("dataloader_timeout.py"),
    Control("loader_exits.py", seconds=None, more=("fork",)),
    Control("loader_exits.py", seconds=None, more=("forkserver",)),  # whose sockets' paths its name makes longer
    Control("openblas_fork.py"),
    Control("manager_idle.py"),
    Control("forkserver_idle.py"),
    Control("executor_idle.py"),
    Control("tcp_server_in_tree.py", seconds=1.5),
    Control("tcp_gives_up.py", more=("send",)),
    Control("tcp_gives_up.py", more=("poll",)),
    Control("loky_idle.py", seconds=1.5),
    # Waits that end by a timer.
    Control("alarm_wakes_lock.py"),
    Control("alarm_ends_child.py"),
    Control("alarm_survives_exec.py"),
    Control("alarm_wakes_sigwait.c"),
    Control("posix_timer.c", more=("signal",)),
    Control("posix_timer.c", more=("thread",)),
    Control("timerfd.c"),
    Control("timed_waits.c", seconds=3),
    Control("receive_timeout.py"),
    Control("select_timeout.py", seconds=4),
    Control("asyncio_idle.py"),
    Control("uvloop_idle.py"),
    Control("eventlet_sleeps.py"),
    Control("trio_sleeps.py"),
    Control("asyncio_set_by_thread.py", more=("safely",)),
    Control("asyncio_set_by_thread.py", more=("beside",)),
    Control("sleeps_once.py", seconds=4.5, stall=3),
    # Polls that have an effect in the end.
    Control("works_between_sleeps.py", seconds=9, more=("prints",), stall=4),
    Control("works_between_sleeps.py", seconds=9, more=("counts",), stall=4),
    Control("poll_decides.py", seconds=8, more=("for",), stall=OUTSIDE_SECONDS),
    Control("poll_decides.py", seconds=8, more=("count",), stall=OUTSIDE_SECONDS),
    Control("poll_decides.py", seconds=8, more=("deadline",), stall=OUTSIDE_SECONDS),
    Control("poll_decides.py", seconds=8, more=("begin",), stall=OUTSIDE_SECONDS),
    Control("poll_decides.c", seconds=8, stall=OUTSIDE_SECONDS),
    Control("poll_decides_unseen.py", seconds=8, more=("global",), stall=OUTSIDE_SECONDS),
    Control("poll_decides_unseen.py", seconds=8, more=("item",), stall=OUTSIDE_SECONDS),
    Control("poll_decides_unseen.py", seconds=8, more=("attribute",), stall=OUTSIDE_SECONDS),
    Control("poll_decides_unseen.py", seconds=8, more=("date",), stall=OUTSIDE_SECONDS),
    Control("poll_decides_unseen.py", seconds=8, more=("select",), reads_loops=True, stall=OUTSIDE_SECONDS),
    Control("poll_decides_unseen.py", seconds=8, more=("file",), stall=OUTSIDE_SECONDS),
    Control("poll_decides_unseen.py", seconds=8, more=("generator",), stall=OUTSIDE_SECONDS),
    Control("poll_decides_unseen.py", seconds=8, more=("caller",), stall=OUTSIDE_SECONDS),
    Control("poll_decides_unseen.py", seconds=8, more=("event-loop",), stall=OUTSIDE_SECONDS),
    Control("poll_decides_unseen.py", seconds=8, more=("pool",), stall=OUTSIDE_SECONDS),
    # A thread wakes up now and then, and lets others go on in the end.
    Control("beats_until.py", seconds=8, more=("clock",), stall=OUTSIDE_SECONDS),
    Control("beats_until.py", seconds=8, more=("item",), stall=OUTSIDE_SECONDS),
    Control("beats_until.py", seconds=10, more=("items-each-time",), stall=OUTSIDE_SECONDS),
    Control("beats_until.py", seconds=8, more=("progress",), stall=OUTSIDE_SECONDS),
    Control("beats_until.py", seconds=8, more=("attribute",), stall=OUTSIDE_SECONDS),
    Control("beats_until.py", seconds=8, more=("tasks",), stall=OUTSIDE_SECONDS),
    Control("beats_until.py", seconds=8, more=("lines-read",), stall=OUTSIDE_SECONDS),
    Control("beats_until.py", seconds=12, more=("messages",), stall=OUTSIDE_SECONDS),
    Control("beats_until.py", seconds=8, more=("line",), stall=OUTSIDE_SECONDS),
    Control("popen_wait_gives_up.py", seconds=8, more=("attribute",), stall=OUTSIDE_SECONDS),
    Control("popen_wait_gives_up.py", seconds=8, more=("tries",), stall=OUTSIDE_SECONDS),
    Control("popen_wait_gives_up.py", seconds=8, more=("clock",), stall=OUTSIDE_SECONDS),
    Control("popen_wait_gives_up.py", seconds=8, more=("thread",), stall=OUTSIDE_SECONDS),
    Control("flag_set_late.py", seconds=8, stall=OUTSIDE_SECONDS),
    Control("idle_child.py", seconds=8, more=("sleeps",), stall=OUTSIDE_SECONDS),
    Control("idle_child.py", seconds=8, more=("computes",), stall=OUTSIDE_SECONDS),
    Control("loop_asks_own.py", seconds=8, more=("future",), stall=OUTSIDE_SECONDS),
    Control("loop_asks_own.py", seconds=8, more=("thread",), stall=OUTSIDE_SECONDS),
    Control("loop_asks_own.py", seconds=8, more=("item",), stall=OUTSIDE_SECONDS),
    Control("loop_asks_own.py", seconds=8, more=("file",), stall=OUTSIDE_SECONDS),
    Control("loop_asks_own.py", seconds=8, more=("length",), stall=OUTSIDE_SECONDS),
    Control("loop_asks_own.py", seconds=8, more=("shared",), stall=OUTSIDE_SECONDS),
    Control("loop_asks_own.py", seconds=8, more=("time",), stall=OUTSIDE_SECONDS),
    Control("loop_asks_own.py", seconds=8, more=("count",), stall=OUTSIDE_SECONDS),
    Control("loop_asks_own.py", seconds=8, more=("event",), stall=OUTSIDE_SECONDS),
    Control("loop_asks_own.py", seconds=8, more=("attribute",), stall=OUTSIDE_SECONDS),
    Control("loop_asks_own.py", seconds=8, more=("process",), stall=OUTSIDE_SECONDS),
    Control("loop_asks_own.py", seconds=8, more=("key",), stall=OUTSIDE_SECONDS),
    Control("epoll_edge_later.py"),
    Control("http_request_to_thread.py"),
    Control("listener_late_client.py"),
    Control("ruby_slow_writer.rb"),
    Control("sqlite_slow_writer.py", seconds=8, stall=OUTSIDE_SECONDS),
    Control("java_slow_class.java", seconds=8, stall=OUTSIDE_SECONDS),
    Control("java_slow_thread.java", seconds=8, more=("sleep",), stall=OUTSIDE_SECONDS),
    Control("java_slow_thread.java", seconds=8, more=("named",), stall=OUTSIDE_SECONDS),
    Control("java_slow_thread.java", seconds=8, more=("poll",), stall=OUTSIDE_SECONDS),
    Control("java_slow_thread.java", seconds=8, more=("hold",), stall=OUTSIDE_SECONDS),
    Control("java_until_sigterm.java", outside.Terminator, ("hook",), quiet=6),
    Control("java_until_sigterm.java", outside.Terminator, ("handler",), quiet=6),
    Control("php_until_sigterm.php", outside.Terminator, quiet=6),
    Control("php_slow_program.php"),
    Control("guile_slow_program.scm"),
    Control("lua_slow_program.lua"),
    Control("timerfd_set_late.c"),
    Control("go_slow_program.go", seconds=4.5),
    Control("go_until_sigterm.go", outside.Terminator, quiet=6),
    Control("ruby_until_sigterm.rb", outside.Terminator, ("trap",), quiet=6),
    Control("ruby_until_sigterm.rb", outside.Terminator, ("sleep",), quiet=6),
    Control("child_polled.py", seconds=8, more=("slow",), stall=OUTSIDE_SECONDS),
    Control("child_polled.py", seconds=8, more=("count",), stall=OUTSIDE_SECONDS),
    Control("supervisor.py", seconds=8, more=("library", "sleeps"), stall=OUTSIDE_SECONDS),
    Control("supervisor.py", seconds=8, more=("library", "waits"), stall=OUTSIDE_SECONDS),
    Control("supervisor.py", seconds=8, more=("own", "sleeps"), stall=OUTSIDE_SECONDS),
    Control("supervisor.py", seconds=8, more=("own", "waits"), stall=OUTSIDE_SECONDS),
    Control("queue_polled.py", outside.Terminator, ("until",), quiet=8),
    Control("queue_polled.py", seconds=8, more=("late",), stall=OUTSIDE_SECONDS),
    Control("folder_dispatcher.py", outside.Creator, quiet=8),
    Control("terminal_offered.py", outside.TerminalUser, quiet=6),
    Control("polls_until_sigterm.py", outside.Terminator),
    Control("polls_until_sigterm.py", outside.Terminator, ("sleeps",), quiet=8),
    Control("recv_of_closed_socket.py", seconds=4.5),
    Control("gloo_slow_rank.py", seconds=4.5),
    Control("irecv_late_sender.py", seconds=4.5),
    Control("store_slow_key.py", seconds=4.5),
    Control("new_group_late.py", seconds=6),
    Control("rpc_slow_function.py", seconds=8, stall=OUTSIDE_SECONDS),
    Control("torchrun_late_node.py", seconds=6, stall=OUTSIDE_SECONDS),
    Control("child_stopped_for_a_while.py", seconds=4.5),
    Control("mpi_exchanges.py", seconds=6),
    Control("mpi_waits.c", seconds=6, compiler="mpicc", stall=OUTSIDE_SECONDS),
    Control("mpi_computes.py", seconds=5, more=("sleeps",), stall=OUTSIDE_SECONDS),
    Control("mpi_computes.py", seconds=5, more=("computes",), stall=OUTSIDE_SECONDS),
    Control("io_uring.c"),
    Control("io_uring.c", more=("epoll",)),
    Control("io_uring.c", seconds=1.5, more=("repeats",)),
    Control("timeout_command.sh", outside.SilentPipe),
    # Waits that only a process outside can end.
    Control("reader_of_file.py", outside.NamedPipe),
    Control("reader_of_file.py", outside.Terminal),
    Control("tcp_client.py", outside.Server),
    Control("unix_client.py", outside.UnixServer),
    Control("descriptor_passed.py", outside.Recipient),
    Control("tcp_server_outside.py", outside.Client),
    *(Control("request_lets_go_on.py", outside.Client, (how,), quiet=6) for how in REQUESTS),
    Control("zmq_server_outside.py", outside.ZeroMqClient, quiet=6),
    Control("event_from_handler.py", outside.Signaller),
    Control("event_from_handler.py", outside.Terminator),
    Control("event_from_handler.py", outside.Interrupter),
    Control("until_interrupted.py", outside.Interrupter, ("asyncio",), quiet=6),
    Control("until_interrupted.py", outside.Interrupter, ("polls",), quiet=6),
    Control("until_interrupted.py", outside.Interrupter, ("joins-beat",), quiet=6),
    Control("until_interrupted.py", outside.Interrupter, ("joins",), quiet=6),
    Control("until_interrupted.py", outside.Interrupter, ("library",), quiet=6),
    Control("until_interrupted.py", outside.Interrupter, ("wakeup",), quiet=6),
    Control("bash_until_interrupted.bash", outside.Interrupter, quiet=6),
    Control("handler_after_program.py", outside.Signaller),
    Control("node_until_sigterm.js", outside.Terminator),
    Control("signal_pause.py", outside.Signaller),
    Control("signal_pause.py", outside.Signaller, ("children",), quiet=5),
    Control("signal_wait.py", outside.Signaller),
    Control("handler_of_signal.c", outside.Signaller),
    Control("handler_of_signal.c", outside.Signaller, ("inside",)),
    Control("handler_of_signal.c", outside.Watchdog, ("inside",)),
    Control("sigwait_for_child.c"),
    Control("threads_greet_late.py"),
    Control("output_captured_by_thread.py"),
    Control("lock_freed_by_handler.py", outside.Signaller, quiet=6),
    Control("signalfd_outside.c", outside.Signaller),
    Control("signalfd_outside.c", outside.Terminator),
    Control("stopped_from_outside.py", outside.Continuer),
    Control("file_lock.py", outside.Locker, ("flock",)),
    Control("file_lock.py", outside.RecordLocker, ("fcntl",)),
    Control("file_lock.py", outside.RecordLocker, ("ofd",)),
    Control("filelock_outside.py", outside.Locker, quiet=6),
    Control("inotify_outside.c", outside.Creator),
    Control("fifo_of_its_own.sh", outside.FifoWriter, ("reads",)),
    Control("fifo_of_its_own.sh", outside.FifoWriter, ("opens",)),
    Control("fifo_announced.sh", outside.AnnouncedFifoWriter),
    Control("listener_for_others.py", outside.ListenerClient, quiet=6),
    Control("manager_for_others.py", outside.ManagerClient),
    Control("manager_for_others.py", outside.ManagerClient, ("start",)),
    Control("shared_semaphore.c", outside.Poster),
    Control("ipc_server.c", outside.LateClient, ("semaphore",)),
    Control("ipc_server.c", outside.LateClient, ("queue",)),
    Control("ipc_server.c", outside.LateClient, ("posix-queue",)),
    Control("ipc_server.c", outside.LateClient, ("named-semaphore",)),
    Control("mutex_in_file.c", outside.MutexHolder),
]
HERE = [control for control in ALL if not control.why_not_here()]
each_control = pytest.mark.parametrize(
    "control",
    [
        pytest.param(control, marks=pytest.mark.skipif(control not in HERE, reason=control.why_not_here()))
        for control in ALL
    ],
    ids=lambda control: control.name,
)
