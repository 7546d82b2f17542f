"""Waits for its child without a limit, while a timer in another thread has one."""

import subprocess
import sys
import threading
from pathlib import Path

CHILD = [sys.executable, str(Path(__file__).with_name("stuck_child.py"))]

if __name__ == "__main__":
    process = subprocess.Popen(CHILD)
    threading.Timer(float(sys.argv[1]), process.kill).start()  # copes here
    process.wait()
    print("done", flush=True)
