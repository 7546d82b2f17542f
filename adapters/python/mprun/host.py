"""The host of start methods fork and forkserver: loads once, then forks every worker on request.

It reports the end of each worker and reaps it only when the supervisor says that it has seen it:
until then the pid cannot be given to another process.
"""
from __future__ import annotations

import array
import atexit
import json
import os
import resource
import select
import socket
import struct
from typing import Any

from mprun import _mprun, script, worker
from mprun.process import EXITED, FORK, FORKED, READY, REAP, STOP, Channels, Start, flush_streams

HEADER = struct.Struct("=IHH")


class Host:
    """The host's loop: the control socket and one pidfd for each child."""

    def __init__(self, start: Start, fds: Channels) -> None:
        self.start, self.fds = start, fds
        self.control = socket.socket(fileno=os.dup(fds.channel))
        self.poll = select.poll()
        self.poll.register(self.control, select.POLLIN)
        self.children: dict[int, int] = {}  # pidfd -> pid
        self.passed: list[int] = []  # descriptors that arrived and were not used yet
        # One pidfd a worker: the limit is raised for the host alone, its workers get theirs back.
        self.open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.open_files[1], self.open_files[1]))

    def send(self, kind: int, value: dict[str, Any]) -> None:
        _mprun.write_frame(self.fds.results, kind, json.dumps(value).encode())

    def receive(self) -> tuple[int, bytes] | None:
        """One frame with the descriptors that ride along; None when the supervisor is gone."""
        header = self.read(HEADER.size)
        if header is None:
            return None
        size, _, kind = HEADER.unpack(header)
        payload = self.read(size) if size else b""
        return None if payload is None else (kind, payload)

    def read(self, size: int) -> bytes | None:
        parts = b""
        while len(parts) < size:
            room = socket.CMSG_LEN(8 * array.array("i").itemsize)
            data, ancillary, _, _ = self.control.recvmsg(size - len(parts), room, socket.MSG_CMSG_CLOEXEC)
            if not data:
                return None
            for _, _, rights in ancillary:
                self.passed.extend(array.array("i", rights))
            parts += data
        return parts

    def serve(self) -> tuple[Start, Channels] | None:
        """Forks on request; returns in the host when it is told to stop, and in each child with its work."""
        while True:
            for fd, _ in self.poll.poll():
                if fd in self.children:
                    self.report_end(fd)
                    continue
                frame = self.receive()
                if frame is None or frame[0] == STOP:
                    return None
                if frame[0] == REAP:
                    self.reap(struct.unpack("=i", frame[1])[0])
                elif frame[0] == FORK:
                    forked = self.fork(json.loads(frame[1]))
                    if forked is not None:
                        return forked

    def fork(self, request: dict[str, Any]) -> tuple[Start, Channels] | None:
        passed, self.passed = self.passed[:4], self.passed[4:]
        flush_streams()
        try:
            pid = _mprun.fork_process()
        except OSError as error:
            self.send(FORKED, {"slot": request["slot"], "error": str(error)})
            pid = -1
        if pid == 0:
            return self.become_child(request, passed)
        for fd in passed:
            os.close(fd)
        if pid > 0:
            try:
                os.setpgid(pid, pid)
            except OSError:
                pass  # the child was faster, or is gone already
            pidfd = os.pidfd_open(pid)
            self.children[pidfd] = pid
            self.poll.register(pidfd, select.POLLIN)
            self.send(FORKED, {"slot": request["slot"], "pid": pid})
        return None

    def become_child(self, request: dict[str, Any], passed: list[int]) -> tuple[Start, Channels]:
        """Context: child after fork. Drops what is the host's and takes what is its own."""
        channel, results, out, err = passed
        os.setpgid(0, 0)
        for fd in self.children:
            os.close(fd)
        self.control.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, self.open_files)
        os.close(self.fds.channel)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.close(out)
        os.close(err)
        atexit._clear()
        os.environ.update(request["env"])
        start = self.start
        start.role = "rank" if not start.function else "worker"
        start.slot = request["slot"]
        return start, Channels(channel, results, self.fds.board)

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


def run(start: Start, fds: Channels) -> tuple[Start, Channels] | None:
    """Loads what workers share, then serves forks. Returns None in the host, in a child what it shall do."""
    script.load_preload(start.preload)
    if start.forked and start.function:
        worker.loaded = worker.load(start)
    host = Host(start, fds)
    _mprun.write_frame(fds.results, READY, b"")
    return host.serve()
