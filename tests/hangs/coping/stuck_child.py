"""The children of these programs: each takes a lock twice, and can never run again."""

import threading

lock = threading.Lock()


def work() -> None:
    with lock:
        lock.acquire()


if __name__ == "__main__":
    work()
