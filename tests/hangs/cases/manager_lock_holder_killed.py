"""The holder of a Manager's lock is killed; the server's thread for it waits, and so does main."""

import multiprocessing
import os
import signal
from multiprocessing.connection import Connection


def hold(lock, locked: Connection) -> None:
    lock.acquire()
    locked.send(True)
    signal.pause()


def main() -> None:
    context = multiprocessing.get_context("fork")
    with context.Manager() as manager:
        lock = manager.Lock()
        is_locked, locked = context.Pipe(duplex=False)
        holder = context.Process(target=hold, args=(lock, locked))
        holder.start()
        is_locked.recv()
        os.kill(holder.pid, signal.SIGKILL)
        holder.join()
        lock.acquire()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
