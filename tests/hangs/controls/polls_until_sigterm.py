"""A server whose worker polls for work that never comes, until SIGTERM ends both; with "sleeps", the main thread polls
too."""

import os
import queue
import signal
import sys
import threading
import time

stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())


def work(tasks: queue.Queue) -> None:
    while not stop.is_set():
        try:
            tasks.get(timeout=0.2)
        except queue.Empty:
            continue


worker = threading.Thread(target=work, args=(queue.Queue(),))
worker.start()
print("ready", os.getpid(), flush=True)
while "sleeps" in sys.argv and not stop.is_set():
    time.sleep(0.5)
worker.join()
print("done")
