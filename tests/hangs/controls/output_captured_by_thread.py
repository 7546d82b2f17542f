"""Captures its own output with a pipe that another thread begins to read late."""

import os
import sys
import threading
import time

SIZE = 100_000


def capture(reader: int) -> None:
    time.sleep(float(sys.argv[1]))  # longer than a hang needs to be proved
    rest = SIZE
    while rest > 0:
        rest -= len(os.read(reader, rest))


if __name__ == "__main__":
    reader, writer = os.pipe()
    screen = os.dup(1)
    thread = threading.Thread(target=capture, args=(reader,))
    thread.start()
    os.dup2(writer, 1)
    os.write(1, b"x" * SIZE)
    os.dup2(screen, 1)
    thread.join()
    print("done", flush=True)
