"""Popen.wait for a child whose output pipe is full and is never read (localstack#1101)."""

import subprocess
import sys

if __name__ == "__main__":
    program = "print('x' * 1_000_000)"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    process.wait()  # hangs here
    print("done", len(process.stdout.read()), flush=True)
