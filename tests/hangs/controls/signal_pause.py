"""Main pauses until a signal comes from outside."""

import os
import signal

if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, lambda _number, _frame: None)
    print("ready", os.getpid(), flush=True)
    signal.pause()
    print("done", flush=True)
