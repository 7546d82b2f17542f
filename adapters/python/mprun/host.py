"""The host of start methods fork and forkserver: loads once, then forks every worker on request.

It sends a pidfd of each worker, since the pid it knows may be a number of another PID namespace. It reports the end of
each worker and reaps it only when the supervisor has confirmed that: until then its process group is its own.
"""
from __future__ import annotations

import _socket  # the part in C of socket, whose enums take milliseconds
import array
import atexit
import errno
import json
import os
import resource
import select
import struct
from collections.abc import Callable, Sequence

import mprun_fork
from mprun import _mprun, script, worker
from mprun.protocol import EXITED, FORK, FORKED, READY, REAP, STOP, Channels, Start, StartFailure, report_stage
from mprun.user_code import flush_streams

from mprun_fork import torch_adapter

TYPE_CHECKING = False  # as typing has it, whose import takes a millisecond or two
if TYPE_CHECKING:
    from typing import Any, NoReturn

HEADER = struct.Struct("=IHH")
MAGIC = 0x6D72  # MPRUN_FRAME_MAGIC
SIGKILL = 9  # as signal has it, whose enums take time
#: By one of these an OpenMP library pins the thread that loads it, and so all processes forked from it, to one processor.
PINNING = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")
#: Descriptors of a FORK frame: channel, results, stdout, stderr.
PASSED = 4

#: What a forked child does instead of returning.
Become = Callable[[Start, Channels], "NoReturn"]


class Host:
    """The host's loop: the control socket and one pidfd for each child."""

    def __init__(self, start: Start, fds: Channels, become: Become, free_cpus: Sequence[int] = ()) -> None:
        self.start, self.fds, self.become = start, fds, become
        self.free_cpus = list(free_cpus)  # what a worker that is bound to none runs on; empty: where this process does
        self.control = _socket.socket(fileno=os.dup(fds.channel))
        self.poll = select.poll()
        self.poll.register(self.control, select.POLLIN)
        self.children: dict[int, int] = {}  # pidfd -> pid
        # One pidfd per worker: raises the limit for the host alone; its workers get the old one back.
        self.open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.open_files[1], self.open_files[1]))

    def send(self, kind: int, value: dict[str, Any]) -> None:
        _mprun.write_frame(self.fds.results, kind, json.dumps(value).encode())

    def send_with_pidfd(self, kind: int, value: dict[str, Any], pidfd: int) -> None:
        payload = json.dumps(value).encode()
        frame = HEADER.pack(len(payload), MAGIC, kind) + payload
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [pidfd]))]
        sent = self.control.sendmsg([frame], rights)  # the pidfd goes with the first byte
        self.control.sendall(frame[sent:])

    def receive(self) -> tuple[int, bytes, list[int]] | None:
        """One frame with the descriptors that came with it; None when the supervisor is gone."""
        passed: list[int] = []
        header = self.read(HEADER.size, passed)
        if header is None:
            return None
        size, _, kind = HEADER.unpack(header)
        payload = self.read(size, passed) if size else b""
        return None if payload is None else (kind, payload, passed)

    def read(self, size: int, passed: list[int]) -> bytes | None:
        parts = b""
        while len(parts) < size:
            room = _socket.CMSG_LEN(PASSED * array.array("i").itemsize)
            data, ancillary, _, _ = self.control.recvmsg(size - len(parts), room, _socket.MSG_CMSG_CLOEXEC)
            if not data:
                return None
            for _, _, rights in ancillary:
                passed.extend(array.array("i", rights))
            parts += data
        return parts

    def serve(self) -> None:
        """Forks on request until asked to stop; each child goes to its work and does not return."""
        while True:
            for fd, _ in self.poll.poll():
                if fd in self.children:
                    self.report_end(fd)
                    continue
                frame = self.receive()
                if frame is None or frame[0] == STOP:
                    return
                if frame[0] == REAP:
                    self.reap(struct.unpack("=i", frame[1])[0])
                elif frame[0] == FORK:
                    self.fork(json.loads(frame[1]), frame[2])

    def fork(self, request: dict[str, Any], passed: list[int]) -> None:
        try:
            if len(passed) != PASSED:  # the kernel drops what is beyond the limit of open files (MSG_CTRUNC)
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            flush_streams()
            pid = _mprun.fork_process()
        except OSError as error:
            self.refuse(request, error)
            pid = -1
        if pid == 0:
            self.become_child(request, passed)
        for fd in passed:
            os.close(fd)
        if pid > 0:
            self.announce(request, pid)

    def refuse(self, request: dict[str, Any], error: OSError) -> None:
        self.send(FORKED, {"slot": request["slot"], "error": error.strerror})

    def announce(self, request: dict[str, Any], pid: int) -> None:
        try:
            os.setpgid(pid, pid)
        except OSError:
            pass  # the child was faster, or is gone already
        try:
            pidfd = os.pidfd_open(pid)
        except OSError as error:  # without it the end could not be seen
            os.kill(pid, SIGKILL)
            os.waitpid(pid, 0)
            self.refuse(request, error)
            return
        self.children[pidfd] = pid
        self.poll.register(pidfd, select.POLLIN)
        self.send_with_pidfd(FORKED, {"slot": request["slot"], "pid": pid}, pidfd)

    def become_child(self, request: dict[str, Any], passed: list[int]) -> NoReturn:
        """Context: child after fork. Drops what belongs to the host and takes what belongs to the child."""
        channel, results, out, err = passed
        os.setpgid(0, 0)
        for fd in self.children:
            os.close(fd)
        self.control.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, self.open_files)
        for fd in {self.fds.channel, self.fds.results}:
            os.close(fd)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.close(out)
        os.close(err)
        atexit._clear()
        os.environ.update(request["env"])
        start = self.start
        start.role = "rank" if not start.function else "worker"
        start.slot = request["slot"]
        start.cpus = request["cpus"] or self.free_cpus
        start.nodes = request["nodes"]
        if start.forked and mprun_fork.is_on("torch"):
            torch_adapter.hide_accelerators()  # forked workers are only requested with the device cpu
        self.become(start, Channels(channel, results, self.fds.claims))

    def report_end(self, pidfd: int) -> None:
        pid = self.children[pidfd]
        self.poll.unregister(pidfd)
        try:
            info = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:  # the user's own code in this process reaped it
            info = None
        if info is None:
            self.send(EXITED, {"pid": pid, "exit_code": 255})
        elif info.si_code == os.CLD_EXITED:
            self.send(EXITED, {"pid": pid, "exit_code": info.si_status})
        else:
            self.send(EXITED, {"pid": pid, "signal": info.si_status})

    def reap(self, pid: int) -> None:
        for pidfd, known in list(self.children.items()):
            if known == pid:
                del self.children[pidfd]
                os.close(pidfd)
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            pass


def run(start: Start, fds: Channels, become: Become) -> None:
    """Loads what workers share, then serves forks until asked to stop. Children end in `become`."""
    free_cpus = sorted(os.sched_getaffinity(0)) if any(name in os.environ for name in PINNING) else []
    for name in start.preload:
        report_stage(fds, f"importing {name}")
        script.load_preload(name)
    if start.forked and start.function:
        worker.loaded = worker.load(start, fds)
    require_pidfds()
    host = Host(start, fds, become, free_cpus)
    _mprun.write_frame(fds.results, READY, b"")
    if not _mprun.wants_clean_thread():
        host.serve()
        return
    # An OpenMP library that cannot be paused is loaded: this thread may have a team of it, a new one has none. The
    # new one serves to the end, because its children die with it (PR_SET_PDEATHSIG depends on the thread that forked).
    import threading

    failures: list[BaseException] = []
    thread = threading.Thread(target=serve_from_clean_thread, args=(host, failures), name="mprun-host")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def require_pidfds() -> None:
    """Fails the start if the kernel has none: mprun could not tell a worker from another process with its pid."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        message = f"fork and forkserver need pidfd_open (Linux 5.3), which fails here: {error.strerror}; use spawn"
        raise StartFailure("host", message) from error


def serve_from_clean_thread(host: Host, failures: list[BaseException]) -> None:
    """Serves on the calling thread, which has never computed anything."""
    _mprun.declare_clean_thread()
    try:
        host.serve()
    except BaseException as error:
        failures.append(error)
