"""Waits for a child a second at a time, again and again; nobody reads what the child writes."""

import subprocess
import sys

WRITES = "print('x' * 200000)"

if __name__ == "__main__":
    child = subprocess.Popen([sys.executable, "-c", WRITES], stdout=subprocess.PIPE)
    while True:
        try:
            child.wait(timeout=1)  # hangs here
            break
        except subprocess.TimeoutExpired:
            print("still running", flush=True)
    print(len(child.stdout.read()))
