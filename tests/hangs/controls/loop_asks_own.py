"""Loops that ask futures, threads, queues and variables, and go on: another thread or process acts after some seconds."""

import multiprocessing
import os
import queue
import sys
import tempfile
import threading
import time
from concurrent.futures import Future

seconds, what = float(sys.argv[1]), sys.argv[2]
future: Future = Future()
items: queue.Queue = queue.Queue()
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "done")


def act() -> None:
    time.sleep(seconds)
    if what == "future":
        future.set_result(None)
    elif what == "item":
        items.put(1)


def create() -> None:
    os.execlp("sh", "sh", "-c", f"sleep {seconds}; : > {path}")


def wait_for_file() -> None:
    if os.fork() == 0:
        create()
    while not future.done():
        time.sleep(0.1)
        if os.path.exists(path):
            future.set_result(None)


def wait_for_time() -> None:
    began = time.monotonic()
    while not future.done():
        time.sleep(0.1)
        if time.monotonic() - began > seconds:
            future.set_result(None)


class Counter:
    looks = 0

    def wait(self) -> None:
        while not future.done():
            time.sleep(0.1)
            self.looks += 1
            if self.looks > 10 * seconds:
                future.set_result(None)


def wait_for_children() -> None:
    """Seldom looks at what the children have counted, who end at once: at the last look but one they still run."""
    context = multiprocessing.get_context("fork")
    done = context.Value("i", 0)
    for _ in range(2):
        context.Process(target=count, args=(done,)).start()
    while done.value < 2:
        time.sleep(seconds / 3.5)


def count(done) -> None:
    time.sleep(seconds)
    with done.get_lock():
        done.value += 1


def wait_for_thread() -> None:
    results: list[int] = []

    def append() -> None:
        time.sleep(seconds)
        results.append(1)

    threading.Thread(target=append).start()
    while len(results) < 1:
        time.sleep(seconds / 3.5)


def wait_for_event() -> None:
    event = multiprocessing.get_context("fork").Event()
    timer = threading.Timer(seconds, event.set)
    timer.start()
    while not event.is_set():
        time.sleep(seconds / 3.5)


class Flag:
    def __init__(self) -> None:
        self.is_set = False

    def set(self) -> None:
        time.sleep(seconds)
        self.is_set = True

    def wait(self) -> None:
        threading.Thread(target=self.set).start()
        while not self.is_set:
            time.sleep(seconds / 3.5)


def wait_for_process() -> None:
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    context.Process(target=put, args=(results,)).start()
    while results.empty():
        time.sleep(seconds / 3.5)
    results.get()


def put(results) -> None:
    time.sleep(seconds)
    results.put(1)


def wait_for_key() -> None:
    by_name: dict[str, int] = {}
    threading.Thread(target=lambda: (time.sleep(seconds), by_name.update(last=1))).start()
    while "last" not in by_name:
        time.sleep(seconds / 3.5)


def wait_for_item() -> None:
    while True:
        try:
            items.get(timeout=0.5)
        except queue.Empty:
            continue
        return


thread = threading.Thread(target=act)
if what in ("future", "item", "thread"):
    thread.start()
if what == "future":
    while not future.done():
        time.sleep(0.1)
elif what == "thread":
    while thread.is_alive():
        thread.join(0.5)
elif what == "item":
    wait_for_item()
elif what == "file":
    wait_for_file()
elif what == "time":
    wait_for_time()
elif what == "shared":
    wait_for_children()
elif what == "length":
    wait_for_thread()
elif what == "event":
    wait_for_event()
elif what == "attribute":
    Flag().wait()
elif what == "process":
    wait_for_process()
elif what == "key":
    wait_for_key()
else:
    Counter().wait()
print("done")
