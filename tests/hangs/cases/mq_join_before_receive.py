"""A child sends more than its message queue holds; its parent joins it before it receives anything."""

import ctypes
import multiprocessing
import os

libc = ctypes.CDLL(None, use_errno=True)
name = b"/mprun-test-%d" % os.getpid()
queue = libc.mq_open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, None)
libc.mq_unlink(name)


def send() -> None:
    for _ in range(1000):
        libc.mq_send(queue, b"result", 6, 0)  # blocks here


if __name__ == "__main__":
    assert queue >= 0
    child = multiprocessing.get_context("fork").Process(target=send)
    child.start()
    child.join()  # hangs here
    print("done")
