"""Reads the output of a child to its end at a terminal, and the child waits for more input there (pexpect's EOF)."""

import os
import pty

if __name__ == "__main__":
    pid, master = pty.fork()
    if pid == 0:
        os.execvp("cat", ["cat"])
    os.write(master, b"a line\n")
    while os.read(master, 100):  # hangs here
        pass
    print("done")
