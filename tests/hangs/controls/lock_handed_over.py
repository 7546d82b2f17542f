"""Two processes hand a lock to each other every 0.3 s; the one that has it sleeps."""

import multiprocessing
import sys
import time
from multiprocessing.synchronize import Lock


def take_turns(lock: Lock, end: float) -> None:
    while time.monotonic() < end:
        with lock:
            time.sleep(0.3)


if __name__ == "__main__":
    end = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else 30)
    context = multiprocessing.get_context("fork")
    lock = context.Lock()
    processes = [context.Process(target=take_turns, args=(lock, end)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    print("done", flush=True)
