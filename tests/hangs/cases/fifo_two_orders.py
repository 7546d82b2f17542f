"""Two processes open two FIFOs, in opposite order."""

import multiprocessing
import os
import tempfile

folder = tempfile.mkdtemp()
there, back = folder + "/there", folder + "/back"


def ask() -> None:
    with open(there, "w", encoding="utf-8") as question:  # blocks here
        question.write("question")
    with open(back, "w", encoding="utf-8") as end:
        end.write("end")


if __name__ == "__main__":
    os.mkfifo(there)
    os.mkfifo(back)
    child = multiprocessing.get_context("fork").Process(target=ask)
    child.start()
    with open(back, encoding="utf-8") as answer:  # hangs here
        answer.read()
    with open(there, encoding="utf-8") as question:
        question.read()
    child.join()
    print("done")
