"""The processes that controls meet outside their own process tree: writers, senders of signals, holders of locks.

Each kind gives the program an argument when it is created. Its act() is called once the program has
printed a line that begins with "ready" and has been left alone for a while.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import mmap
import multiprocessing.connection
import os
import pty
import signal
import socket
import subprocess
import tempfile
import threading
import time
from multiprocessing.managers import BaseManager
from pathlib import Path

import harness
from harness import Running


class Outside:
    """No process: the program ends without help. The base of all the others."""

    acts = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.argument: str | None = None

    def act(self, running: Running) -> None:
        """Does what the program waits for."""

    def close(self) -> None:
        """Releases what is still held."""


class NamedPipe(Outside):
    """We hold the write end of a named pipe."""

    acts = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        path = folder / "pipe"
        os.mkfifo(path)
        self.argument = str(path)
        self._sink = os.open(path, os.O_RDWR)

    def act(self, running: Running) -> None:
        os.write(self._sink, b"go\n")

    def close(self) -> None:
        os.close(self._sink)


class SilentPipe(NamedPipe):
    """The same, but we never write."""

    acts = False


class Terminal(Outside):
    """We hold the other end of a terminal."""

    acts = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._keyboard, self._terminal = pty.openpty()
        self.argument = os.ttyname(self._terminal)

    def act(self, running: Running) -> None:
        os.write(self._keyboard, b"go\n")

    def close(self) -> None:
        os.close(self._keyboard)
        os.close(self._terminal)


class TerminalUser(Outside):
    """We write to the terminal whose number the program announces."""

    acts = True

    def act(self, running: Running) -> None:
        terminal = os.open(f"/dev/pts/{number_announced(running)}", os.O_WRONLY | os.O_NOCTTY)
        os.write(terminal, b"go\n")
        os.close(terminal)


class Server(Outside):
    """We are a server that accepts slowly."""

    acts = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.argument = str(self._server.getsockname()[1])

    def act(self, running: Running) -> None:
        connection, _ = self._server.accept()
        with connection:
            connection.sendall(b"go\n")

    def close(self) -> None:
        self._server.close()


class UnixServer(Server):
    """The same, at a path."""

    def __init__(self, folder: Path) -> None:
        Outside.__init__(self, folder)
        # A short name: the length of such a path is limited.
        self._home = tempfile.TemporaryDirectory(prefix="mprun-test-")
        self.argument = f"{self._home.name}/socket"
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(self.argument)
        self._server.listen()

    def close(self) -> None:
        super().close()
        self._home.cleanup()


class Recipient(UnixServer):
    """We are passed a descriptor, and write to it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._passed: list[int] = []
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        connection, _ = self._server.accept()
        with connection:
            _, self._passed, _, _ = socket.recv_fds(connection, 1, 1)

    def act(self, running: Running) -> None:
        os.write(self._passed[0], b"x")

    def close(self) -> None:
        super().close()
        for descriptor in self._passed:
            os.close(descriptor)


class Client(Outside):
    """We are a client of the port that the program names."""

    acts = True

    def act(self, running: Running) -> None:
        with socket.create_connection(("127.0.0.1", number_announced(running))) as connection:
            connection.sendall(b"go\n")


class ZeroMqClient(Outside):
    """We ask a server of ZeroMQ at a path."""

    acts = True
    ASKS = """
import sys, zmq
socket = zmq.Context().socket(zmq.REQ)
socket.connect(f"ipc://{sys.argv[1]}")
socket.send(b"request")
socket.recv()
"""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        # A short name: the length of such a path is limited.
        self._home = tempfile.TemporaryDirectory(prefix="mprun-test-")
        self.argument = f"{self._home.name}/socket"
        self._client: subprocess.Popen[bytes] | None = None

    def act(self, running: Running) -> None:
        """Others wait for us meanwhile: it takes the time that an import takes."""
        self._client = subprocess.Popen([harness.MPRUN_PYTHON, "-c", self.ASKS, self.argument])

    def close(self) -> None:
        super().close()
        if self._client is not None:
            self._client.kill()
            self._client.wait()
        self._home.cleanup()


class Signaller(Outside):
    """We signal the process that the program names."""

    acts = True
    number = signal.SIGUSR1

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.argument = self.number.name

    def act(self, running: Running) -> None:
        os.kill(number_announced(running), self.number)


class Terminator(Signaller):
    """With SIGTERM, as service managers end a service."""

    number = signal.SIGTERM


class Interrupter(Signaller):
    """With SIGINT, as Ctrl-C ends a program."""

    number = signal.SIGINT


class Watchdog(Signaller):
    """With SIGABRT, as systemd signals a service that has not reported in time."""

    number = signal.SIGABRT


class Continuer(Signaller):
    """With SIGCONT."""

    number = signal.SIGCONT


class Locker(Outside):
    """We hold a lock of a file, by flock()."""

    acts = True
    lock = staticmethod(fcntl.flock)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        path = folder / "locked"
        self.argument = str(path)
        self._file = open(path, "w", encoding="utf-8")
        self.lock(self._file, fcntl.LOCK_EX)

    def act(self, running: Running) -> None:
        self.lock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        self._file.close()


class RecordLocker(Locker):
    """By fcntl()."""

    lock = staticmethod(fcntl.lockf)


class Creator(Outside):
    """We create a file in a folder."""

    acts = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.argument = str(folder)

    def act(self, running: Running) -> None:
        (self.folder / "new").touch()


class Poster(Outside):
    """We post the semaphore in a file: with the same program, as another process."""

    acts = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.argument = str(folder / "semaphore")

    def act(self, running: Running) -> None:
        subprocess.run([*running.argv[-2:], "post"], check=True)


class MutexHolder(Outside):
    """We hold a mutex in a file for longer than the three seconds of an early report."""

    acts = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        path = folder / "mutex"
        path.write_bytes(bytes(64))  # pthread_mutex_t needs 40
        self.argument = str(path)
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 64)
        self._mutex = ctypes.c_char.from_buffer(self._memory)
        self._libc = ctypes.CDLL(None)
        attributes = ctypes.create_string_buffer(64)
        self._libc.pthread_mutexattr_init(attributes)
        self._libc.pthread_mutexattr_setpshared(attributes, 1)  # PTHREAD_PROCESS_SHARED
        self._libc.pthread_mutex_init(ctypes.byref(self._mutex), attributes)
        self._libc.pthread_mutex_lock(ctypes.byref(self._mutex))

    def act(self, running: Running) -> None:
        time.sleep(2)  # the program has waited for 2.5 s: together they are more than three
        self._libc.pthread_mutex_unlock(ctypes.byref(self._mutex))


class LateClient(Outside):
    """We ask the program, with the same program as another process, after the three seconds of an early report."""

    acts = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        path = folder / "key"
        path.touch()
        self.argument = str(path)
        self._client: subprocess.Popen[bytes] | None = None

    def act(self, running: Running) -> None:
        self._client = subprocess.Popen(["sh", "-c", 'sleep 2; exec "$@" ask', "sh", *running.argv[-3:]])

    def close(self) -> None:
        if self._client:
            self._client.wait()


class FifoWriter(Outside):
    """We write to a FIFO that the program makes in a folder of its own, under a name that we know beforehand."""

    acts = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.argument = str(folder / "own")

    def act(self, running: Running) -> None:
        with open(self.folder / "own/fifo", "w") as fifo:
            fifo.write("go\n")


class AnnouncedFifoWriter(Outside):
    """We write to a FIFO whose name the program has written to a file."""

    acts = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.argument = str(folder / "name")

    def act(self, running: Running) -> None:
        with open((self.folder / "name").read_text().strip(), "w") as fifo:
            fifo.write("go\n")


class ListenerClient(Outside):
    """We connect to a listener of multiprocessing, whose address the program has written to a file."""

    acts = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.argument = str(folder / "address")

    def act(self, running: Running) -> None:
        with multiprocessing.connection.Client((self.folder / "address").read_text(), authkey=b"key") as server:
            server.send("stop")


class ManagerClient(Outside):
    """We connect to a manager of the program, whose address it has written to a file."""

    acts = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.argument = str(folder / "address")

    def act(self, running: Running) -> None:
        class Manager(BaseManager):
            pass

        Manager.register("finish")
        manager = Manager((self.folder / "address").read_text(), authkey=b"key")
        manager.connect()
        with contextlib.suppress(EOFError, OSError):  # the program may end before it answers
            manager.finish()  # type: ignore[attr-defined]


def number_announced(running: Running) -> int:
    """The number after "ready" in what the program has printed."""
    return int(running.stdout.partition("ready ")[2].split()[0])
