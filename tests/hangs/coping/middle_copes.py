"""Waits without a limit for a process that gives its own child a limited time."""

import subprocess
import sys
from pathlib import Path

MIDDLE = [sys.executable, str(Path(__file__).with_name("communicate_timeout.py"))]

if __name__ == "__main__":
    subprocess.run([*MIDDLE, sys.argv[1]], check=True)
