"""Waits for a lock that it has locked itself: the handler of a signal from outside frees it, by the way of a method."""

import os
import signal
import threading
from types import FrameType


class Service:
    def __init__(self) -> None:
        self.gate = threading.Lock()
        self.gate.acquire()
        signal.signal(signal.SIGUSR1, self.handle)

    def handle(self, number: int, frame: FrameType | None) -> None:
        self.wake()

    def wake(self) -> None:
        self.gate.release()

    def run(self) -> None:
        self.gate.acquire()
        print("done", flush=True)


if __name__ == "__main__":
    service = Service()
    print("ready", os.getpid(), flush=True)
    service.run()
