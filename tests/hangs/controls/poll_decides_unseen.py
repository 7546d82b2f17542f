"""Something waits again and again, a fraction of a second each time, for what never comes, and goes on after a while by
what is not among the variables of its loop: a count elsewhere, a clock, a file. The rest of the program waits for it."""

import asyncio
import collections
import datetime
import multiprocessing
import queue
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

SECONDS, WAY = float(sys.argv[1]), sys.argv[2]
LIMIT = 0.4
POLLS = int(SECONDS / LIMIT)
never = threading.Event()
polls = 0
seen: "collections.Counter[str]" = collections.Counter()


class Deadline:
    """Keeps the time two attributes away from the loop."""

    def __init__(self) -> None:
        self.end = time.monotonic_ns() + int(SECONDS * 1e9)


class Waiter:
    """Its loop is a method's."""

    def __init__(self) -> None:
        self.deadline = Deadline()
        self.work: "queue.Queue[None]" = queue.Queue()

    def until_deadline(self) -> None:
        while time.monotonic_ns() < self.deadline.end:
            try:
                self.work.get(timeout=LIMIT)
            except queue.Empty:
                continue


def uptime() -> int:
    """Of the machine, in milliseconds."""
    with open("/proc/uptime") as file:
        return int(float(file.read().split()[0]) * 1000)


def time_of_end() -> int:
    return uptime() + int(SECONDS * 1000)


def count_globally() -> None:
    global polls
    while polls < POLLS:
        never.wait(LIMIT)
        polls += 1


def count_in_item() -> None:
    while seen["polls"] < POLLS:
        if not never.wait(LIMIT):
            seen["polls"] += 1


def by_date() -> None:
    end = datetime.datetime.now() + datetime.timedelta(seconds=SECONDS)
    while datetime.datetime.now() < end:
        never.wait(LIMIT)


def by_date_with_select() -> None:
    end = datetime.datetime.now() + datetime.timedelta(seconds=SECONDS)
    own, _other = socket.socketpair()
    while datetime.datetime.now() < end:
        select.select([own], [], [], LIMIT)


def by_file() -> None:
    end = time_of_end()
    condition = threading.Condition()
    with condition:
        while uptime() < end:
            condition.wait(LIMIT)


def attempts() -> Iterator[None]:
    yield from (None for _ in range(POLLS))


def by_generator() -> None:
    for _ in attempts():
        never.wait(LIMIT)


def wait_once() -> bool:
    return never.wait(LIMIT)


def by_caller() -> None:
    end = time_of_end()
    while uptime() < end:
        wait_once()


async def in_event_loop() -> None:
    end = time_of_end()
    while uptime() < end:
        await asyncio.sleep(LIMIT)


def in_thread(function: Callable[[], None]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def in_process(_: object) -> None:
    by_file()


def in_executor() -> None:
    with ThreadPoolExecutor(1) as executor:
        executor.submit(count_in_item).result()


def in_pool() -> None:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.map(in_process, [None])


WAYS = {
    "global": lambda: in_thread(count_globally),
    "item": in_executor,
    "attribute": lambda: in_thread(Waiter().until_deadline),
    "date": lambda: in_thread(by_date),
    "select": lambda: in_thread(by_date_with_select),
    "file": lambda: in_thread(by_file),
    "generator": lambda: in_thread(by_generator),
    "caller": lambda: in_thread(by_caller),
    "event-loop": lambda: in_thread(lambda: asyncio.run(in_event_loop())),
    "pool": in_pool,
}

if __name__ == "__main__":
    WAYS[WAY]()
    print("done")
