"""Threads wait for work while main computes."""

import queue
import sys
import threading
import time

tasks: queue.Queue[int | None] = queue.Queue()


def consume() -> None:
    while tasks.get() is not None:
        pass


if __name__ == "__main__":
    end = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else 20)
    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    while time.monotonic() < end:
        sum(range(1000))
    for thread in threads:
        tasks.put(None)
    for thread in threads:
        thread.join()
    print("done", flush=True)
