"""A child that sleeps, joined all the while."""

import multiprocessing
import sys
import time

if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(seconds,))
    process.start()
    process.join()
    print("done", flush=True)
