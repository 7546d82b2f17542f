"""Two processes pass a byte to and fro as fast as they can: each nearly always waits for the other."""

import multiprocessing
import sys
import time
from multiprocessing.connection import Connection


def answer(connection: Connection) -> None:
    while connection.recv():
        connection.send(True)


if __name__ == "__main__":
    end = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else 20)
    context = multiprocessing.get_context("fork")
    connection, other = context.Pipe()
    process = context.Process(target=answer, args=(other,))
    process.start()
    while time.monotonic() < end:
        connection.send(True)
        assert connection.recv()
    connection.send(False)
    process.join()
    print("done", flush=True)
