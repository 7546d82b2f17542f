"""A child writes more to its terminal than that holds; the process at the other side waits for its end."""

import os
import pty

if __name__ == "__main__":
    pid, master = pty.fork()
    if pid == 0:
        os.write(1, b"x" * 1_000_000)  # blocks here
        os._exit(0)
    os.waitpid(pid, 0)  # hangs here
    print("done")
