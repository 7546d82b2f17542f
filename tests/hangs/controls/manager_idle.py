"""A Manager's server has nothing to do while main sleeps."""

import multiprocessing
import sys
import time

if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    with multiprocessing.get_context("fork").Manager() as manager:
        numbers = manager.list([1, 2])
        time.sleep(seconds)
        numbers.append(3)
        assert list(numbers) == [1, 2, 3]
    print("done", flush=True)
