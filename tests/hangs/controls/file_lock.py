"""A child waits for a lock of the file that it is given, flock() or fcntl() by name; somebody outside holds it."""

import fcntl
import multiprocessing
import sys


def lock(path: str, kind: str) -> None:
    with open(path, "r+") as file:
        print("ready", flush=True)
        if kind == "flock":
            fcntl.flock(file, fcntl.LOCK_EX)
        else:
            fcntl.lockf(file, fcntl.LOCK_EX)


if __name__ == "__main__":
    process = multiprocessing.get_context("fork").Process(target=lock, args=tuple(sys.argv[1:]))
    process.start()
    process.join()
    assert process.exitcode == 0
    print("done", flush=True)
