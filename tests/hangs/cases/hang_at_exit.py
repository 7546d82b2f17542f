"""Case 24: main has returned, a child that is no daemon waits for a lock that is never released: the hang is at
exit.
"""

import multiprocessing
from multiprocessing.synchronize import Lock


def work(lock: Lock) -> None:
    lock.acquire()  # blocks here


def main() -> None:
    context = multiprocessing.get_context("fork")
    lock = context.Lock()
    lock.acquire()
    context.Process(target=work, args=(lock,)).start()


if __name__ == "__main__":
    main()
