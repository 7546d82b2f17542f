"""Main has returned, and the interpreter waits for a thread that is no daemon (opentrons#12970)."""

import queue
import threading

tasks: queue.Queue[int] = queue.Queue()


def consume() -> None:
    while True:
        tasks.get()  # blocks here


if __name__ == "__main__":
    threading.Thread(target=consume).start()
