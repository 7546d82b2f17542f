"""Case 9 with a parent that goes on: only the child is dead (bpo-6721, cpython#50970)."""

import multiprocessing
import threading

lock = threading.Lock()
locked = threading.Event()
joined = threading.Event()


def hold() -> None:
    with lock:
        locked.set()
        while not joined.wait(0.1):
            pass  # has something to do now and then


def work() -> None:
    lock.acquire()  # blocks here


def main() -> None:
    threading.Thread(target=hold, daemon=True).start()
    locked.wait()
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()  # hangs here
    joined.set()
    print("done", flush=True)


if __name__ == "__main__":
    main()
