"""A forkserver has nothing to do while main sleeps."""

import multiprocessing
import sys
import time

if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    context = multiprocessing.get_context("forkserver")
    for _ in range(2):
        process = context.Process(target=abs, args=(-1,))
        process.start()
        process.join()
        assert process.exitcode == 0
        time.sleep(seconds / 2)
    print("done", flush=True)
