"""Looks at its child now and then, and gives up after the tenth time."""

import subprocess
import sys
import time
from pathlib import Path

CHILD = [sys.executable, str(Path(__file__).with_name("stuck_child.py"))]

if __name__ == "__main__":
    process = subprocess.Popen(CHILD)
    for _ in range(10):
        time.sleep(float(sys.argv[1]) / 10)  # copes here
        assert process.poll() is None
    process.kill()
    process.wait()
    print("done", flush=True)
