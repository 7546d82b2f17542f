"""A C function joins a thread, without the GIL; that thread wants the GIL, which a third one keeps while it sleeps."""

import ctypes
import sys
import threading
import time

released = threading.Event()


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def run_until_released(_argument: int | None) -> None:
    while not released.is_set():
        time.sleep(0.01)


def keep_gil(milliseconds: int) -> None:
    ctypes.PyDLL(None).poll(None, 0, milliseconds)
    released.set()


if __name__ == "__main__":
    libc = ctypes.CDLL(None)
    joined = ctypes.c_ulong()
    libc.pthread_create(ctypes.byref(joined), None, run_until_released, None)
    threading.Timer(0.1, keep_gil, [int(1000 * float(sys.argv[1]))]).start()
    libc.pthread_join(joined, None)
    print("done", flush=True)
