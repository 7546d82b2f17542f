"""A ThreadPoolExecutor is idle while main sleeps, and still is when the interpreter exits."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

executor = ThreadPoolExecutor(2)

if __name__ == "__main__":
    assert executor.submit(abs, -1).result() == 1
    time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 30)
    print("done", flush=True)
