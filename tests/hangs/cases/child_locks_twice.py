"""A forked child takes a lock from before the fork, which was free then, twice."""

import multiprocessing
import threading

lock = threading.Lock()


def write(text: str) -> None:
    with lock:
        print(text)


def work() -> None:
    with lock:
        write("started")


if __name__ == "__main__":
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()  # hangs here
    print("done")
