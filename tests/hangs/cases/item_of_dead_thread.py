"""Asks a queue twice a second for two items; the thread that puts them has raised after the first."""

import queue
import threading

items: queue.Queue = queue.Queue()


def produce() -> None:
    items.put(1)
    raise ValueError("no more")


def consume() -> None:
    got = []
    while len(got) < 2:
        try:
            got.append(items.get(timeout=0.5))
        except queue.Empty:
            continue


threading.Thread(target=produce).start()
consume()
print("done")
