"""A thread reads a socket that its process has closed; a child, which has the other end, sends after some seconds."""

import os
import platform
import socket
import sys
import threading
import time
from pathlib import Path

RECVFROM = {"x86_64": "45", "aarch64": "207"}[platform.machine()]


def read() -> None:
    print(ours.recv(1).decode(), flush=True)


if __name__ == "__main__":
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        time.sleep(float(sys.argv[1]))  # longer than a hang needs to be reported
        theirs.send(b"1")
        os._exit(0)
    thread = threading.Thread(target=read)
    thread.start()
    while Path(f"/proc/self/task/{thread.native_id}/syscall").read_text().split()[0] != RECVFROM:
        pass  # only the kernel knows that the call has begun
    ours.close()
    thread.join()
    os.wait()
    print("done")
