"""Main waits for an Event that the handler of a signal from outside sets; before, it ran a program, by vfork."""

import os
import signal
import subprocess
import sys
import threading

event = threading.Event()

if __name__ == "__main__":
    number = signal.Signals[sys.argv[1] if len(sys.argv) > 1 else "SIGUSR1"]
    signal.signal(number, lambda _number, _frame: event.set())
    subprocess.run(["true"], check=True)  # its child takes all handlers away, for itself
    print("ready", os.getpid(), flush=True)
    event.wait()
    print("done", flush=True)
