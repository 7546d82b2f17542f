"""A child polls twenty times a second for a lock file of its parent, which waits for the child (filelock#315)."""

import multiprocessing
import tempfile

import filelock

path = tempfile.mkdtemp() + "/lock"


def work() -> None:
    with filelock.FileLock(path):
        pass


if __name__ == "__main__":
    with filelock.FileLock(path):
        child = multiprocessing.get_context("fork").Process(target=work)
        child.start()
        child.join()  # hangs here
    print("done")
