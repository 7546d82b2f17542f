"""Looks whether a thread has set its attribute; the thread fails before."""

import threading
import time


class Loader(threading.Thread):
    def __init__(self) -> None:
        super().__init__()
        self.is_ready = False

    def run(self) -> None:
        raise OSError("no such model")


if __name__ == "__main__":
    loader = Loader()
    loader.start()
    while not loader.is_ready:
        time.sleep(0.2)  # hangs here
    print("done")
