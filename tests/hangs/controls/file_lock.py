"""A child waits for a lock of the file that it is given; a process outside holds it.

By name: flock(), or fcntl() for one of a process or of an open file ("ofd").
"""

import fcntl
import multiprocessing
import struct
import sys

F_OFD_SETLKW = 38


def lock(path: str, kind: str) -> None:
    with open(path, "r+") as file:
        print("ready", flush=True)
        if kind == "flock":
            fcntl.flock(file, fcntl.LOCK_EX)
        elif kind == "ofd":
            whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
            fcntl.fcntl(file, F_OFD_SETLKW, whole)
        else:
            fcntl.lockf(file, fcntl.LOCK_EX)


if __name__ == "__main__":
    process = multiprocessing.get_context("fork").Process(target=lock, args=tuple(sys.argv[1:]))
    process.start()
    process.join()
    assert process.exitcode == 0
    print("done", flush=True)
