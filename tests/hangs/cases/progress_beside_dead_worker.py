"""Waits until all items of a queue are done; the thread that did them has failed, and another one shows the progress."""

import queue
import threading
import time

items: "queue.Queue[int]" = queue.Queue()


def work() -> None:
    while True:
        1 / (items.get() - 3)
        items.task_done()


def show_progress() -> None:
    while True:
        time.sleep(0.5)
        print(items.unfinished_tasks, "left", flush=True)


if __name__ == "__main__":
    threading.Thread(target=show_progress, daemon=True).start()
    threading.Thread(target=work, daemon=True).start()
    for item in range(10):
        items.put(item)
    items.join()  # hangs here
    print("done")
