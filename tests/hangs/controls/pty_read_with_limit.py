"""A child reads its terminal, in raw mode and for a limited time; the process at the other side waits for its end."""

import os
import pty
import sys
import termios
import tty

if __name__ == "__main__":
    pid, master = pty.fork()
    if pid == 0:
        tty.setraw(0)
        settings = termios.tcgetattr(0)
        settings[6][termios.VMIN] = 0
        settings[6][termios.VTIME] = int(float(sys.argv[1]) * 10)
        termios.tcsetattr(0, termios.TCSANOW, settings)
        os._exit(len(os.read(0, 1)))
    assert os.waitpid(pid, 0) == (pid, 0)
    print("done", flush=True)
