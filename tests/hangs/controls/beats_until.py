"""Two threads wait for each other's lock, or a process for a line, until a thread that wakes up now and then, and else
only reports, lets them go on after some seconds; last argument: how."""

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


def wait_for_items(count: int) -> None:
    for _ in range(count):
        items.get()
    first.release()


def wait_for_progress() -> None:
    while done < BEATS:
        time.sleep(PERIOD)
    first.release()


THREADS = {
    "clock": [by_clock],
    "item": [by_item, lambda: wait_for_items(1)],
    "items-each-time": [by_items_each_time, lambda: wait_for_items(ITEMS)],
    "progress": [by_progress, wait_for_progress],
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
    else:
        wait_crossed()
    print("done", flush=True)
