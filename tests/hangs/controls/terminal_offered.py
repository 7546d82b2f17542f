"""Waits, as a simulated serial port does, until a process outside writes to its terminal."""

import os
import pty

if __name__ == "__main__":
    master, slave = pty.openpty()  # both stay open, so that others may come and go
    print("ready", os.path.basename(os.ttyname(slave)), flush=True)
    os.read(master, 100)
    print("done", flush=True)
