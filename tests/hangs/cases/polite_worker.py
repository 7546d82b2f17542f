"""A worker that has a handler for SIGTERM takes a lock that another thread held when it was forked."""

import multiprocessing
import signal
import sys
import threading

lock = threading.Lock()
locked = threading.Event()


def hold() -> None:
    with lock:
        locked.set()
        threading.Event().wait()


def work() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with lock:  # blocks here
        pass


if __name__ == "__main__":
    threading.Thread(target=hold, daemon=True).start()
    locked.wait()
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()  # hangs here
    print("done", flush=True)
