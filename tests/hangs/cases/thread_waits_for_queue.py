"""Thread.join of a consumer that was not asked to stop: it waits for its queue (black-arrow#17's kind)."""

import queue
import threading

tasks: queue.Queue[int] = queue.Queue()


def consume() -> None:
    while True:
        tasks.get()  # blocks here


if __name__ == "__main__":
    thread = threading.Thread(target=consume)
    thread.start()
    tasks.put(1)
    thread.join()  # hangs here
    print("done", flush=True)
