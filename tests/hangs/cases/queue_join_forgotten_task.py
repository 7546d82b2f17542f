"""Queue.join waits for a task_done() that never comes, as the consumer died of an exception (ipython#8554)."""

import queue
import threading

tasks: queue.Queue[str] = queue.Queue()


def consume() -> None:
    while True:
        int(tasks.get())
        tasks.task_done()


if __name__ == "__main__":
    threading.excepthook = lambda _arguments: None
    threading.Thread(target=consume, daemon=True).start()
    for text in ("1", "two", "3"):
        tasks.put(text)
    tasks.join()  # hangs here
    print("done", flush=True)
