"""Captures its own output with a pipe, and reads it only when all has been written."""

import os

if __name__ == "__main__":
    reader, writer = os.pipe()
    screen = os.dup(1)
    os.dup2(writer, 1)
    os.close(writer)
    os.write(1, b"x" * 100_000)  # hangs here
    os.dup2(screen, 1)
    with os.fdopen(reader, "rb") as captured:
        print(len(captured.read()))
