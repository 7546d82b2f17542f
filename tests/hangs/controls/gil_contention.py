"""Many threads want the GIL all the time; main joins them."""

import sys
import threading
import time


def compute(end: float) -> None:
    while time.monotonic() < end:
        sum(range(1000))


if __name__ == "__main__":
    end = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else 20)
    threads = [threading.Thread(target=compute, args=(end,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("done", flush=True)
