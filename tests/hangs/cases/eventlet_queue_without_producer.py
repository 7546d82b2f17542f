"""A green thread waits for an item that nobody puts: the producer has failed."""

import eventlet

eventlet.monkey_patch()

import queue  # noqa: E402
import threading  # noqa: E402

items: queue.Queue = queue.Queue()


def produce(count: int) -> None:
    for number in range(count):
        items.put(10 // (2 - number))


if __name__ == "__main__":
    threading.Thread(target=produce, args=(4,)).start()
    for _ in range(4):
        print(items.get(), flush=True)
    print("done")
