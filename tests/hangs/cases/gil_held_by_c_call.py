"""Case 20: a C function that keeps the GIL waits forever, as extensions without Py_BEGIN_ALLOW_THREADS do;
the thread that could help it waits for the GIL.
"""

import ctypes
import os
import sys
import threading
import time

source, sink = os.pipe()
joined = threading.Event()


def joining() -> bool:
    innermost = sys._current_frames()[threading.main_thread().ident].f_code.co_name
    return innermost.startswith("_wait") or (innermost == "join" and sys.version_info >= (3, 13))


def read_with_gil() -> None:
    looks = 0
    while looks < 10:  # until main rests in its join, and does not want the GIL
        time.sleep(0.01)
        looks = looks + 1 if joining() else 0
    ctypes.PyDLL(None).read(source, ctypes.create_string_buffer(1), 1)  # blocks here


def write_when_joined() -> None:
    while not joined.wait(0.01):
        pass
    os.write(sink, b"x")


if __name__ == "__main__":
    reader = threading.Thread(target=read_with_gil)
    reader.start()
    threading.Thread(target=write_when_joined, daemon=True).start()
    reader.join()  # hangs here
    joined.set()
    print("done", flush=True)
