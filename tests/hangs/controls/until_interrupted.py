"""Idle until SIGINT, which a handler of its own answers, or an exception; last argument: how it waits, or who installs
the handler."""

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import sys
import threading
import time

stopped = threading.Event()


def show_life() -> None:
    while True:
        time.sleep(0.4)
        print("alive", file=sys.stderr, flush=True)


def join_beat() -> None:
    beat = threading.Thread(target=show_life, daemon=True)
    beat.start()
    print("ready", os.getpid(), flush=True)
    try:
        beat.join()
    except KeyboardInterrupt:
        pass


def wait_for_flag() -> None:
    while not stopped.is_set():
        time.sleep(0.2)


def wait_for_wakeup() -> None:
    readable, writable = socket.socketpair()
    writable.setblocking(False)
    signal.set_wakeup_fd(writable.fileno())
    with contextlib.suppress(KeyboardInterrupt):
        readable.recv(1)


async def serve() -> None:
    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, end.set)
    print("ready", os.getpid(), flush=True)
    await end.wait()


if __name__ == "__main__":
    how = sys.argv[-1]
    if how == "asyncio":
        asyncio.run(serve())
    elif how == "joins-beat":
        join_beat()
    else:
        stop = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda _number: stopped.set())
        if how == "library":
            ctypes.CDLL(None).signal(signal.SIGINT, stop)
        elif how != "wakeup":
            signal.signal(signal.SIGINT, lambda _number, _frame: stopped.set())
        print("ready", os.getpid(), flush=True)
        if how == "polls":
            wait_for_flag()
        elif how == "library":
            stopped.wait()
        elif how == "wakeup":
            wait_for_wakeup()
        else:
            worker = threading.Thread(target=stopped.wait)
            worker.start()
            worker.join()
    print("done", flush=True)
