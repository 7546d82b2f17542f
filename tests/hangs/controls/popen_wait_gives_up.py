"""Waits for a child a second at a time, and reads in the end what the child writes; last argument: how the end comes."""

import subprocess
import sys
import threading
import time

SECONDS, WAY = float(sys.argv[1]), sys.argv[2]
WRITES = "print('x' * 200000)"


class Patience:
    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        self.child = child
        self.left = SECONDS

    def wait(self) -> None:
        while self.left > 0:
            try:
                self.child.wait(timeout=1)
                break
            except subprocess.TimeoutExpired:
                self.left -= 1


def wait_often(child: "subprocess.Popen[bytes]") -> None:
    for _ in range(int(SECONDS)):
        try:
            child.wait(timeout=1)
        except subprocess.TimeoutExpired:
            print("still running", flush=True)


def wait_until(child: "subprocess.Popen[bytes]", end: float) -> None:
    while time.monotonic() < end:
        try:
            child.wait(timeout=1)
        except subprocess.TimeoutExpired:
            continue


def read_late(child: "subprocess.Popen[bytes]") -> None:
    time.sleep(SECONDS)
    child.communicate()


if __name__ == "__main__":
    child = subprocess.Popen([sys.executable, "-c", WRITES], stdout=subprocess.PIPE)
    if WAY == "attribute":
        Patience(child).wait()
    elif WAY == "tries":
        wait_often(child)
    elif WAY == "clock":
        wait_until(child, time.monotonic() + SECONDS)
    elif WAY == "thread":
        threading.Thread(target=read_late, args=(child,)).start()
        while True:
            try:
                child.wait(timeout=1)
                break
            except subprocess.TimeoutExpired:
                print("still running", flush=True)
    if WAY != "thread":
        child.communicate()
    assert child.returncode == 0
    print("done", flush=True)
