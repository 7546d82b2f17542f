"""Two threads wait for each other's lock, a process for a line, for its tasks or for the end of a child that writes,
until a thread that wakes up now and then, and else only reports, lets them go on after some seconds; last argument:
how."""

import multiprocessing
import multiprocessing.connection
import queue
import subprocess
import sys
import threading
import time

SECONDS, WAY = float(sys.argv[1]), sys.argv[2]
PERIOD = 0.4
BEATS, ITEMS = int(SECONDS / PERIOD), 8
END = time.monotonic() + SECONDS
first, second = threading.Lock(), threading.Lock()
items: "queue.Queue[str]" = queue.Queue()
done = 0


def by_clock() -> None:
    while True:
        time.sleep(PERIOD)
        if time.monotonic() >= END and first.locked():
            first.release()


def by_item() -> None:
    while True:
        time.sleep(PERIOD)
        if time.monotonic() >= END and items.empty():
            items.put("go on")


def by_items_each_time() -> None:
    while True:
        time.sleep(SECONDS / ITEMS)
        items.put("one of some")


def by_progress() -> None:
    global done
    while True:
        time.sleep(PERIOD)
        done += 1


def by_line() -> None:
    """Of a child, which is then killed."""
    while True:
        time.sleep(PERIOD)
        if time.monotonic() >= END:
            print("go on", flush=True)


class Progress:
    """Watched by its own class."""

    def __init__(self) -> None:
        self.rounds = 0

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if time.monotonic() >= END and first.locked():
            first.release()


progress = Progress()


def by_attribute() -> None:
    while True:
        time.sleep(PERIOD)
        progress.rounds += 1


def wait_for_items(count: int) -> None:
    for _ in range(count):
        items.get()
    first.release()


def wait_for_progress() -> None:
    while done < BEATS:
        time.sleep(PERIOD)
    first.release()


def by_tasks() -> None:
    while True:
        time.sleep(PERIOD)
        print("sent", items.get(), flush=True)
        items.task_done()


# A pipe holds 16 pages of 4 KiB, and lets its writer go on when it has a free one.
def by_lines_read(child: "subprocess.Popen[str]") -> None:
    assert child.stdout is not None
    while True:
        time.sleep(SECONDS / 10)
        child.stdout.readline()  # every eighth time it takes 8 KiB


def by_messages(reads: "multiprocessing.connection.Connection") -> None:
    while True:
        time.sleep(SECONDS / 12)
        reads.recv()


def send_messages(writes: "multiprocessing.connection.Connection") -> None:
    for _ in range(17 * 12):
        writes.send("x" * 300)


def wait_for_writer() -> None:
    if WAY == "lines-read":
        code = "for _ in range(19): print(4 * ('x' * 1023 + '\\n'), end='')"
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        threading.Thread(target=by_lines_read, args=(child,), daemon=True).start()
        child.wait()
    else:
        context = multiprocessing.get_context("fork")
        reads, writes = context.Pipe(duplex=False)
        sender = context.Process(target=send_messages, args=(writes,))
        sender.start()
        writes.close()
        threading.Thread(target=by_messages, args=(reads,), daemon=True).start()
        sender.join()


THREADS = {
    "clock": [by_clock],
    "item": [by_item, lambda: wait_for_items(1)],
    "items-each-time": [by_items_each_time, lambda: wait_for_items(ITEMS)],
    "progress": [by_progress, wait_for_progress],
    "attribute": [by_attribute],
    "line-of-child": [by_line],
}


def take_crossed() -> None:
    with second:
        with first:
            pass


def wait_crossed() -> None:
    first.acquire()
    for target in THREADS[WAY]:
        threading.Thread(target=target, daemon=True).start()
    threading.Thread(target=take_crossed).start()
    while not second.locked():
        time.sleep(0.01)  # until the other thread holds it
    with second:  # the other thread holds it until it has the first one
        pass


if __name__ == "__main__":
    if WAY == "line":
        command = [sys.executable, __file__, str(SECONDS), "line-of-child"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            child.stdout.readline()
            child.kill()
    elif WAY in ("lines-read", "messages"):
        wait_for_writer()
    elif WAY == "tasks":
        for number in range(BEATS):
            items.put(str(number))
        threading.Thread(target=by_tasks, daemon=True).start()
        items.join()
    else:
        wait_crossed()
    print("done", flush=True)
