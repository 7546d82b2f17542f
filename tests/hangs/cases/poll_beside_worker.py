"""A child looks again and again into a queue that no process fills, while another one works."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from multiprocessing.queues import Queue
from queue import Empty

WORK = "while True: pass"


def take(queue: Queue[int]) -> None:
    while True:
        try:
            print(queue.get(timeout=0.2), flush=True)
        except Empty:
            continue
        return


if __name__ == "__main__":
    with subprocess.Popen([sys.executable, "-c", WORK]):
        context = multiprocessing.get_context("fork")
        child = context.Process(target=take, args=(context.Queue(),))
        child.start()
        child.join()  # hangs here
        print("done", flush=True)
