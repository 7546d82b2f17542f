"""A child asks filelock again and again for a lock of the file that it is given; a process outside holds it."""

import multiprocessing
import sys

import filelock


def lock(path: str) -> None:
    print("ready", flush=True)
    with filelock.FileLock(path):
        pass


if __name__ == "__main__":
    process = multiprocessing.get_context("fork").Process(target=lock, args=(sys.argv[1],))
    process.start()
    process.join()
    assert process.exitcode == 0
    print("done", flush=True)
