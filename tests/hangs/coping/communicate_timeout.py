"""Gives a program some seconds to answer, and then kills it."""

import subprocess
import sys
from pathlib import Path

CHILD = [sys.executable, str(Path(__file__).with_name("stuck_child.py"))]

if __name__ == "__main__":
    with subprocess.Popen(CHILD, stdout=subprocess.PIPE) as process:
        try:
            process.communicate(timeout=float(sys.argv[1]))  # copes here
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
    print("done", flush=True)
