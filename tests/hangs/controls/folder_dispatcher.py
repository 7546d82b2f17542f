"""Hands the files of a folder to a worker. Looks for new ones between sleeps, and whether the worker lives."""

import multiprocessing
import os
import sys
import time


def work(files) -> None:
    print("got", os.path.basename(files.get()), flush=True)


if __name__ == "__main__":
    folder = sys.argv[1]
    context = multiprocessing.get_context("fork")
    files = context.Queue()
    worker = context.Process(target=work, args=(files,))
    worker.start()
    print("ready", flush=True)
    while worker.is_alive():
        for name in os.listdir(folder):
            if name == "new":
                files.put(name)
        time.sleep(0.1)
    print("done")
