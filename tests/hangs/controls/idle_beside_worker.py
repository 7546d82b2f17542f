"""Main is idle until a child has worked for some seconds, and ends it by a signal: in a wait, or in a loop that looks."""

import subprocess
import sys
import threading
import time

WORK = """
import os, signal, sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    pass
os.kill(os.getppid(), signal.SIGINT)
"""

if __name__ == "__main__":
    seconds, how = sys.argv[1:]
    stopped = threading.Event()
    with subprocess.Popen([sys.executable, "-c", WORK, seconds]):
        try:
            if how == "loop":
                while not stopped.is_set():
                    time.sleep(0.1)  # between two looks: the loop under test
            else:
                stopped.wait()
        except KeyboardInterrupt:
            print("done", flush=True)
