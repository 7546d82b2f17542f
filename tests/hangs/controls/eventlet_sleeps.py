"""The main green thread waits for an item, which another one puts when it has slept for some seconds."""

import sys
import warnings

warnings.simplefilter("ignore")  # newer versions say that eventlet should not be used any more

import eventlet  # noqa: E402

eventlet.monkey_patch()

import queue  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402

items: queue.Queue = queue.Queue()


def put_later() -> None:
    time.sleep(float(sys.argv[1]))
    items.put("done")


if __name__ == "__main__":
    threading.Thread(target=put_later).start()
    print(items.get())
