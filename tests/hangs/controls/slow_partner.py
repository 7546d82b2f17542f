"""All wait for one that sleeps a while before it does what they wait for, in one of several ways."""

import asyncio
import multiprocessing
import multiprocessing.connection
import subprocess
import sys
import threading
import time
from collections.abc import Callable

context = multiprocessing.get_context("fork")


def barrier(seconds: float) -> None:
    meeting = context.Barrier(3)

    def come(late: float) -> None:
        time.sleep(late)  # the partner is slow: that is what this is about
        meeting.wait()

    parties = [context.Process(target=come, args=(late,)) for late in (0, seconds)]
    for party in parties:
        party.start()
    meeting.wait()
    for party in parties:
        party.join()


def condition(seconds: float) -> None:
    changed, values = threading.Condition(), []

    def change() -> None:
        with changed:
            values.append(1)
            changed.notify()

    threading.Timer(seconds, change).start()
    with changed:
        changed.wait_for(lambda: values)


def queue(seconds: float) -> None:
    """The producer is a thread of a child."""
    tasks = context.Queue()

    def produce() -> None:
        time.sleep(seconds)  # the partner is slow: that is what this is about
        tasks.put(1)

    def run() -> None:
        thread = threading.Thread(target=produce)
        thread.start()
        thread.join()

    child = context.Process(target=run)
    child.start()
    tasks.get()
    child.join()


def semaphore(seconds: float) -> None:
    """A child has all its permits, and returns them in the end."""
    permits = context.Semaphore(1)
    permits.acquire()

    def release() -> None:
        time.sleep(seconds)  # the partner is slow: that is what this is about
        permits.release()

    child = context.Process(target=release)
    child.start()
    with permits:
        child.join()


def program(seconds: float) -> None:
    """A thread holds a lock while it runs a program."""
    lock, taken = threading.Lock(), threading.Event()

    def run() -> None:
        with lock:
            taken.set()
            subprocess.run(["sleep", str(seconds)], check=True)

    thread = threading.Thread(target=run)
    thread.start()
    taken.wait()
    with lock:
        thread.join()


def accept(seconds: float) -> None:
    """A connection waits until it is accepted."""
    with multiprocessing.connection.Listener(family="AF_UNIX") as listener:

        def ask() -> None:
            with multiprocessing.connection.Client(listener.address) as connection:
                assert connection.recv() == "answer"

        child = context.Process(target=ask)
        child.start()
        time.sleep(seconds)  # the partner is slow: that is what this is about
        with listener.accept() as connection:
            connection.send("answer")
        child.join()


def task(seconds: float) -> None:
    """Of asyncio, that waits for a program's output."""

    async def run() -> bytes:
        command = ["sh", "-c", f"sleep {seconds}; echo done"]
        child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        return (await child.communicate())[0]

    assert asyncio.run(run()) == b"done\n"


WAYS: dict[str, Callable[[float], None]] = {
    way.__name__: way for way in (barrier, condition, queue, semaphore, program, accept, task)
}

if __name__ == "__main__":
    WAYS[sys.argv[2]](float(sys.argv[1]))
    print("done")
