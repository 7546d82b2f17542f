"""A signal's handler takes the lock that main holds at that moment, as logging in a handler may."""

import signal
import threading
import time
from types import FrameType

lock = threading.Lock()


def handle(number: int, frame: FrameType | None) -> None:
    with lock:  # hangs here
        print("handled", flush=True)


signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.1)
with lock:
    time.sleep(1)  # the signal comes meanwhile
print("done")
