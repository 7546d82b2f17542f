"""What looks like the hangs of threads and event loops that wait for each other, and goes on after some seconds."""

import asyncio
import multiprocessing
import os
import socket
import sys
import threading
import time

seconds, what = float(sys.argv[1]), sys.argv[2]


def join_in_a_row() -> None:
    first = threading.Thread(target=time.sleep, args=(seconds,))
    second = threading.Thread(target=first.join)
    first.start()
    second.start()
    second.join()


def join_reader() -> None:
    ours, theirs = socket.socketpair()
    reader = threading.Thread(target=lambda: theirs.recv(1))
    reader.start()
    threading.Timer(seconds, ours.close).start()
    reader.join()


async def ask_loop() -> None:
    loop = asyncio.get_running_loop()

    def ask() -> None:
        asyncio.run_coroutine_threadsafe(asyncio.sleep(seconds), loop).result()

    await loop.run_in_executor(None, ask)


async def read_from_grandchild() -> None:
    command = f"sleep {seconds} & echo started"
    child = await asyncio.create_subprocess_shell(command, stdout=asyncio.subprocess.PIPE)
    await child.wait()
    child._transport.close()  # else CPython 3.11 may complain at exit that the loop is closed


def take(lock) -> None:
    with lock:
        pass


def take_lock_of_manager() -> None:
    context = multiprocessing.get_context("fork")
    lock = context.Manager().Lock()
    worker = context.Process(target=take, args=(lock,))
    with lock:
        worker.start()
        time.sleep(seconds)
    worker.join()


if __name__ == "__main__":
    if what == "joins":
        join_in_a_row()
    elif what == "reader":
        join_reader()
    elif what == "loop":
        asyncio.run(ask_loop())
    elif what == "grandchild":
        asyncio.run(read_from_grandchild())
    else:
        take_lock_of_manager()
    print("done")
