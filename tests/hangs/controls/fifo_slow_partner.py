"""A child opens its end of a FIFO late, and writes to it later still."""

import multiprocessing
import os
import sys
import tempfile
import time

path = tempfile.mkdtemp() + "/fifo"


def answer(seconds: float) -> None:
    time.sleep(seconds)
    with open(path, "w", encoding="utf-8") as out:
        time.sleep(seconds)
        out.write("answer")


if __name__ == "__main__":
    os.mkfifo(path)
    child = multiprocessing.get_context("fork").Process(target=answer, args=(float(sys.argv[1]),))
    child.start()
    with open(path, encoding="utf-8") as answered:
        assert answered.read() == "answer"
    child.join()
    print("done")
