"""A child reads its terminal to the end; the process at the other side waits for its end (pexpect)."""

import os
import pty

if __name__ == "__main__":
    pid, master = pty.fork()
    if pid == 0:
        os.execvp("cat", ["cat"])
    os.waitpid(pid, 0)  # hangs here
    print("done")
