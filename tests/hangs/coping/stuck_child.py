"""The children of the programs here: each takes a lock twice, and can never move again."""

import threading

lock = threading.Lock()


def work() -> None:
    with lock:
        lock.acquire()


if __name__ == "__main__":
    work()
