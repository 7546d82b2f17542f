"""Case 12: the holder of a multiprocessing.Lock is killed; no process will ever release it (birdnet#73)."""

import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Lock


def hold(lock: Lock, locked: Connection) -> None:
    with lock:
        locked.send(True)
        signal.pause()


def work(lock: Lock) -> None:
    lock.acquire()  # blocks here


def main() -> None:
    context = multiprocessing.get_context("fork")
    lock = context.Lock()
    is_locked, locked = context.Pipe(duplex=False)
    holder = context.Process(target=hold, args=(lock, locked))
    holder.start()
    is_locked.recv()
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    process = context.Process(target=work, args=(lock,))
    process.start()
    process.join()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
