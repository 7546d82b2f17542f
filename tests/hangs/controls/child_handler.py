"""Main waits for an Event that the handler of SIGCHLD sets, when the child has slept enough."""

import multiprocessing
import signal
import sys
import threading
import time

ended = threading.Event()

if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    signal.signal(signal.SIGCHLD, lambda _number, _frame: ended.set())
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(seconds,))
    process.start()
    ended.wait()
    process.join()
    print("done", flush=True)
