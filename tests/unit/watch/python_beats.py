"""Threads that wake up now and then, for watch_python_beat_test.cc: it sees which of them only beat (python_beat.h).

Once the instructions of all are specialised, it writes one line of JSON to standard output, {"beats": {TID: [NAME,
EXPECTED], ...}}. It ends when standard input does.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

MOMENT = 0.005
EXPECTED: dict[Callable[[], None], str] = {}
stopped, changed = threading.Event(), threading.Event()
lock = threading.Lock()
items: queue.Queue[int] = queue.Queue()
tasks: queue.Queue[int] = queue.Queue()
reads, writes = multiprocessing.Pipe()
future: Future[int] = Future()
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
state: dict[str, int] = {"done": 0}
actions = {"set": changed.set}
count = 0
log = logging.getLogger("beats")
own_log, filtered_log = logging.getLogger("own"), logging.getLogger("filtered")
nowhere, nothing = open(os.devnull, "w"), open(os.devnull)
no_file = Path(os.devnull)


class Forwards(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno > logging.CRITICAL:
            changed.set()


class Worker:
    def __init__(self) -> None:
        self.running = True
        self.rounds = 0
        self.action: Callable[[], object] = time.monotonic

    def report(self) -> None:
        print(f"{self.rounds} rounds at {time.strftime('%H:%M')}", file=sys.stderr)

    def count(self) -> None:
        self.rounds += 1

    def check(self) -> None:
        if time.monotonic() < 0:
            changed.set()

    def fail_late(self) -> None:
        if time.monotonic() < 0:
            raise TimeoutError

    @property
    def state(self) -> str:
        self.check()
        return "alive"

    def __str__(self) -> str:
        return self.state


class Watched:
    """Whoever sets an attribute of it runs its code."""

    def __init__(self) -> None:
        self.rounds = 0

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        worker.check()


class Guarded:
    """The same when one is read."""

    def __init__(self) -> None:
        self.rounds = 0

    def __getattribute__(self, name: str) -> object:
        worker.check()
        return super().__getattribute__(name)


worker = Worker()
watched, guarded = Watched(), Guarded()


def expect(what: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Registers a function as one that "beats", with what it does besides, or "decides", or "asks" for a child."""

    def register(function: Callable[[], None]) -> Callable[[], None]:
        EXPECTED[function] = what
        return function

    return register


@expect("beats")
def sleeps() -> None:
    while True:
        time.sleep(MOMENT)


@expect("beats")
def shows_the_time() -> None:
    began = time.time()
    while True:
        time.sleep(MOMENT)
        sys.stderr.write("\r%.0f s" % (time.time() - began))
        sys.stderr.flush()


@expect("beats")
def logs_until_stopped() -> None:
    while not stopped.wait(MOMENT):
        log.warning("alive: %s", os.getloadavg())


@expect("beats")
def looks_for_a_stop() -> None:
    while not stopped.is_set():
        print("alive", file=sys.stderr)
        time.sleep(MOMENT)


@expect("beats")
def runs_while_it_may() -> None:
    while worker.running:
        worker.report()
        time.sleep(MOMENT)


@expect("beats")
def empties_a_queue() -> None:
    while True:
        try:
            items.get(timeout=MOMENT)
        except queue.Empty:
            pass


@expect("beats")
def touches_a_file() -> None:
    while True:
        with open(os.devnull, "w") as file:
            file.write(str(time.time()))
        time.sleep(MOMENT)


def write_time() -> None:
    with open(os.devnull, "w") as file:
        print(time.time(), file=file)


@expect("beats")
def touches_a_file_in_a_function() -> None:
    while True:
        write_time()
        time.sleep(MOMENT)


@expect("beats")
def sets_each_time() -> None:
    while True:
        changed.set()
        time.sleep(MOMENT)


@expect("beats")
def counts_the_ready() -> None:
    while True:
        time.sleep(MOMENT)
        print(sum(one.done() for one in (future, future)), json.dumps({"threads": threading.active_count()}),
              file=sys.stderr)


@expect("beats and prints at times")
def shows_each_tenth() -> None:
    rounds = 0
    while True:
        time.sleep(MOMENT)
        rounds += 1
        if rounds % 10 == 0:
            print(rounds, file=sys.stderr)


@expect("beats and changes variables")
def counts_in_an_attribute() -> None:
    while True:
        worker.count()
        time.sleep(MOMENT)


@expect("beats and changes variables")
def counts_in_a_dict() -> None:
    while True:
        time.sleep(MOMENT)
        with lock:
            state["done"] = state["done"] + 1


@expect("asks")
def shows_the_time_until_a_child_ends() -> None:
    began = time.time()
    while child.poll() is None:
        print(time.time() - began, file=sys.stderr)
        time.sleep(MOMENT)


@expect("beats")
def moves_an_item_each_time() -> None:
    while True:
        time.sleep(MOMENT)
        tasks.put(1)
        tasks.get()


@expect("decides")
def by_the_last_of_some_tasks() -> None:
    while True:
        time.sleep(MOMENT)
        tasks.put(1)
        tasks.get()
        tasks.task_done()


@expect("decides")
def by_room_in_a_pipe_of_lines() -> None:
    while True:
        time.sleep(MOMENT)
        nothing.readline()


@expect("decides")
def by_room_in_a_pipe_of_messages() -> None:
    while True:
        time.sleep(MOMENT)
        writes.send(1)
        reads.recv()


@expect("decides")
def by_an_attribute_that_is_watched() -> None:
    while True:
        time.sleep(MOMENT)
        watched.rounds += 1


@expect("decides")
def by_an_attribute_that_is_guarded() -> None:
    while True:
        time.sleep(MOMENT)
        print(guarded.rounds, file=nowhere)


@expect("decides")
def by_the_clock() -> None:
    while time.time() > 0:
        time.sleep(MOMENT)


@expect("decides")
def by_a_count() -> None:
    rounds = 0
    while rounds < 1_000_000:
        time.sleep(MOMENT)
        rounds += 1


@expect("decides")
def by_a_global_count() -> None:
    global count
    while count < 1_000_000:
        time.sleep(MOMENT)
        count += 1


@expect("decides")
def by_a_loop_that_ends() -> None:
    for _ in range(1_000_000):
        time.sleep(MOMENT)


@expect("decides")
def by_an_exception_that_it_catches() -> None:
    while True:
        time.sleep(MOMENT)
        try:
            os.stat("/")
        except FileNotFoundError:
            break


@expect("decides")
def by_what_it_is() -> None:
    while True:
        time.sleep(MOMENT)
        if os.environ.get("missing") is worker:
            break


@expect("decides")
def by_a_range_of_times() -> None:
    limit = 1e12
    while 0 < time.time() < limit:
        time.sleep(MOMENT)


@expect("decides")
def by_what_it_takes() -> None:
    own = [0] * 1_000_000
    while own:
        own.pop()
        time.sleep(MOMENT)


@expect("decides")
def by_a_method() -> None:
    while True:
        time.sleep(MOMENT)
        worker.check()


@expect("decides")
def by_an_exception_of_a_method() -> None:
    while True:
        time.sleep(MOMENT)
        worker.fail_late()


@expect("decides")
def by_a_property() -> None:
    while True:
        time.sleep(MOMENT)
        print(worker.state, file=sys.stderr)


@expect("decides")
def by_a_text() -> None:
    while True:
        time.sleep(MOMENT)
        print(worker, file=sys.stderr)


@expect("decides")
def by_a_missing_file() -> None:
    while True:
        time.sleep(MOMENT)
        try:
            os.stat("/missing")
        except FileNotFoundError:
            continue
        changed.set()


def look_for_file() -> None:
    os.stat("/missing")
    changed.set()


@expect("decides")
def by_an_exception_of_a_function() -> None:
    while True:
        time.sleep(MOMENT)
        try:
            look_for_file()
        except FileNotFoundError:
            pass


@expect("decides")
def by_a_line_to_a_file() -> None:
    while True:
        time.sleep(MOMENT)
        if time.time() < 0:
            nowhere.write("go on")


@expect("decides")
def by_a_filter() -> None:
    while True:
        time.sleep(MOMENT)
        filtered_log.warning("alive")


@expect("decides")
def by_a_list() -> None:
    while True:
        time.sleep(MOMENT)
        for action in (worker.check, time.time):
            action()


@expect("decides")
def by_an_item() -> None:
    while True:
        time.sleep(MOMENT)
        actions["set"]()


@expect("decides")
def by_an_attribute_that_it_sets() -> None:
    other = Worker()
    while True:
        time.sleep(MOMENT)
        other.action()
        other.action = time.time


def steps() -> Iterator[None]:
    while True:
        worker.check()
        yield


@expect("beats")
def by_the_time_of_a_file() -> None:
    while True:
        time.sleep(MOMENT)
        no_file.touch()


@expect("decides")
def by_a_generator() -> None:
    all_steps = steps()
    while True:
        time.sleep(MOMENT)
        next(all_steps)


@expect("decides")
def by_a_handler_of_its_own() -> None:
    while True:
        time.sleep(MOMENT)
        own_log.warning("alive")


@expect("decides")
def by_an_item_for_others() -> None:
    while True:
        time.sleep(MOMENT)
        if time.time() < 0:
            items.put(1)


if __name__ == "__main__":
    sys.stderr = open(os.devnull, "w")
    log.addHandler(logging.StreamHandler(sys.stderr))
    log.propagate = own_log.propagate = False
    own_log.addHandler(Forwards())
    filtered_log.addFilter(lambda record: record.levelno > logging.CRITICAL and changed.set() is None)
    beats = {}
    for function, what in EXPECTED.items():
        thread = threading.Thread(target=function, daemon=True)
        thread.start()
        beats[thread.native_id] = [function.__name__, what]
    time.sleep(200 * MOMENT)  # Python specialises instructions after some rounds
    print(json.dumps({"beats": beats}), flush=True)
    os.read(0, 1)
    child.kill()
