"""A program with the default SIGPIPE, as a shell starts it, forks while another thread holds a lock."""

import multiprocessing
import signal
import threading

signal.signal(signal.SIGPIPE, signal.SIG_DFL)
lock = threading.Lock()
locked = threading.Event()


def hold() -> None:
    with lock:
        locked.set()
        threading.Event().wait()


def work() -> None:
    with lock:  # blocks here
        pass


if __name__ == "__main__":
    threading.Thread(target=hold, daemon=True).start()
    locked.wait()
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()  # hangs here
    print("done", flush=True)
