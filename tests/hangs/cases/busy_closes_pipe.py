"""A process reads a pipe whose last other writing end is closed by a process that goes on with its work.

The reader keeps a writing end of its own, and nothing in it moves when the other one is closed.
"""

import multiprocessing
import time


def work(reading, writing):
    reading.close()
    until = time.monotonic() + 2  # mprun has judged the reader by then
    while time.monotonic() < until:
        sum(range(10_000))
    writing.close()
    while True:
        sum(range(10_000))


def receive(reading, writing):
    print(reading.recv())
    writing.close()


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    reading, writing = context.Pipe(duplex=False)
    worker = context.Process(target=work, args=(reading, writing), daemon=True)
    reader = context.Process(target=receive, args=(reading, writing))
    worker.start()
    reader.start()
    writing.close()
    reader.join()  # hangs here
