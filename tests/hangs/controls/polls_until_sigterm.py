"""A server whose worker polls for work that never comes, until SIGTERM ends both."""

import os
import queue
import signal
import threading

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
worker.join()
print("done")
