"""Main pauses until a signal comes from outside; with "children", it handles the end of children too, and has none."""

import os
import signal
import sys

if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, lambda _number, _frame: None)
    if "children" in sys.argv:
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    print("ready", os.getpid(), flush=True)
    signal.pause()
    print("done", flush=True)
