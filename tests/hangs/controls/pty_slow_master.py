"""A child reads its terminal, and then fills it; the process at the other side takes its time for both."""

import os
import pty
import sys
import time

if __name__ == "__main__":
    seconds = float(sys.argv[1])
    pid, master = pty.fork()
    if pid == 0:
        os.read(0, 1)
        os.write(1, b"x" * 100_000)
        os._exit(0)
    time.sleep(seconds)
    os.write(master, b"\n")
    time.sleep(seconds)
    try:
        while os.read(master, 4096):
            pass
    except OSError:
        pass  # the end, as Linux reports it
    os.waitpid(pid, 0)
    print("done")
