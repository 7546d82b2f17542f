"""A C call keeps the GIL while it sleeps; other threads wait for the GIL and main joins."""

import ctypes
import sys
import threading
import time


def sleep_with_gil(seconds: float) -> None:
    ctypes.PyDLL(None).usleep(ctypes.c_uint(int(1e6 * seconds)))


def tick(thread: threading.Thread) -> None:
    while thread.is_alive():
        time.sleep(0.01)


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    sleeper = threading.Thread(target=sleep_with_gil, args=(seconds,))
    ticker = threading.Thread(target=tick, args=(sleeper,))
    sleeper.start()
    ticker.start()
    sleeper.join()
    ticker.join()
    print("done", flush=True)
