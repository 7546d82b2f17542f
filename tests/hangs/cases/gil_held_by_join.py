"""A C function joins a thread and keeps the GIL, which that thread wants before it ends: so did the destructor of torch's
gloo process groups in 2.6. A third thread, which has never run Python, lives on.
"""

import ctypes
import threading
import time

pthread_t = ctypes.c_ulong
joined = threading.Event()


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def run_until_joined(_argument: int | None) -> None:
    while not joined.is_set():
        time.sleep(0.01)


def start(library: ctypes.CDLL, function: object, argument: int | None) -> pthread_t:
    thread = pthread_t()
    library.pthread_create(ctypes.byref(thread), None, ctypes.cast(function, ctypes.c_void_p), argument)
    return thread


if __name__ == "__main__":
    keeps_gil = ctypes.PyDLL(None)
    start(keeps_gil, keeps_gil.sleep, 1000)
    keeps_gil.pthread_join(start(keeps_gil, run_until_joined, None), None)  # hangs here
    joined.set()
    print("done", flush=True)
