"""Main waits for an Event that only the handler of a signal from outside sets; argument: its name."""

import os
import signal
import sys
import threading

event = threading.Event()

if __name__ == "__main__":
    number = signal.Signals[sys.argv[1] if len(sys.argv) > 1 else "SIGUSR1"]
    signal.signal(number, lambda _number, _frame: event.set())
    print("ready", os.getpid(), flush=True)
    event.wait()
    print("done", flush=True)
