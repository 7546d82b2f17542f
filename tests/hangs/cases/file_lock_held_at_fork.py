"""Another thread is writing to a file object at the moment of fork: its lock stays locked in the child
(cpython#84579, ansible#79522).
"""

import multiprocessing
import os
import threading

source, sink = os.pipe()
log = os.fdopen(sink, "wb")


def write_much() -> None:
    log.write(b"x" * 1_000_000)  # more than the pipe holds


def work() -> None:
    log.write(b"from the child")  # blocks here


def main() -> None:
    threading.Thread(target=write_much, daemon=True).start()
    assert len(os.read(source, 1)) == 1  # the other thread is in its write, and stays there
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
