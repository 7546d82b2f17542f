"""A thread sleeps, and a child waits for a limited time, each once and for longer than the limit for a stall."""

import multiprocessing
import sys
import threading
import time


def wait(seconds: float) -> None:
    threading.Event().wait(seconds)


if __name__ == "__main__":
    seconds = float(sys.argv[1])
    thread = threading.Thread(target=time.sleep, args=(seconds,))
    thread.start()
    child = multiprocessing.get_context("fork").Process(target=wait, args=(2 * seconds,))
    child.start()
    thread.join()
    child.join()
    print("done", flush=True)
