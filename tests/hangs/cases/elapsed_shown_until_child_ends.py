"""Shows for how long a child has run until it ends; nobody reads what the child writes."""

import subprocess
import sys
import time

WRITES = "print('x' * 200000)"

if __name__ == "__main__":
    began = time.time()
    child = subprocess.Popen([sys.executable, "-c", WRITES], stdout=subprocess.PIPE)
    while child.poll() is None:
        print(f"running for {time.time() - began:.0f} s", flush=True)
        time.sleep(0.5)  # hangs here
    print("done")
