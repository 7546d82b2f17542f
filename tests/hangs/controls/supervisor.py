"""A thread looks now and then whether workers live, and gives a lost one up after a while, as that of Celery does."""

import multiprocessing
import sys

# What is compiled under the first name counts as a library's code.
FILES = {"library": "/usr/lib/python3/dist-packages/pool_of_library.py", "own": "pool_of_its_own.py"}
SOURCE = '''
import threading
import time


class Supervisor(threading.Thread):
    def __init__(self, worker, patience, way):
        super().__init__(daemon=True)
        self.worker, self.patience, self.lost_since, self.given_up = worker, patience, None, threading.Event()
        self.pause = {"sleeps": time.sleep, "waits": self.given_up.wait}[way]

    def run(self):
        while not self.given_up.is_set():
            if self.lost_since is None and not self.worker.is_alive():
                self.lost_since = time.monotonic()
            if self.lost_since is not None and time.monotonic() > self.lost_since + self.patience:
                self.given_up.set()
            for process in multiprocessing.active_children():
                process.is_alive()
            self.pause(0.1)  # between its looks, which is what the control is about
'''


def take(lock, ends: bool) -> None:
    lock.acquire()
    if ends:
        sys.exit(1)


if __name__ == "__main__":
    library = {"multiprocessing": multiprocessing, "__name__": "pool"}
    exec(compile(SOURCE, FILES[sys.argv[2]], "exec"), library)
    context = multiprocessing.get_context("fork")
    lock = context.Lock()
    lost = context.Process(target=take, args=(lock, True))
    lost.start()
    lost.join()
    waits = context.Process(target=take, args=(lock, False), daemon=True)
    waits.start()
    supervisor = library["Supervisor"](lost, float(sys.argv[1]), sys.argv[3])
    supervisor.start()
    supervisor.given_up.wait()
    waits.terminate()
    print("done")
