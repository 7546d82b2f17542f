"""A child reads from the named pipe or terminal that it is given; the writer is outside the tree."""

import multiprocessing
import os
import sys


def read(path: str) -> None:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOCTTY)) as source:
        print("ready", flush=True)
        assert source.readline() == "go\n"


if __name__ == "__main__":
    process = multiprocessing.get_context("fork").Process(target=read, args=(sys.argv[1],))
    process.start()
    process.join()
    assert process.exitcode == 0
    print("done", flush=True)
