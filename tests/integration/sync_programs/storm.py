"""Processes that use a queue, a dict, a lock and counters, and are killed in the midst of it: storm.py KILLS SEED.

Two put, two get, both wait without a limit; each one killed is replaced. In the end the record that each kept of its
actions is compared with the shared objects. A journal is a file for each process; a line is one write, so that it is
there whole or not at all, whenever its process is killed.
"""
from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import mprun

PRODUCERS = CONSUMERS = 2
ITEMS_AT_ONCE = 3
KEYS = 20


class Child:
    """What a process of the storm does until it is killed or asked to stop."""

    def __init__(self, number: int, role: str, seed: int) -> None:
        self.number, self.role = number, role
        self.random = random.Random(seed)
        self.journal = os.open(
            f"journal-{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        )
        self.jobs = mprun.queue("jobs", ITEMS_AT_ONCE)
        self.seen = mprun.dict("seen")
        self.lock = mprun.lock("both")
        self.first, self.second = mprun.counter("first"), mprun.counter("second")
        self.operations = mprun.counter("operations")

    def write(self, *words: object) -> None:
        os.write(self.journal, (" ".join(map(str, words)) + "\n").encode())

    def run(self) -> None:
        item = 0
        while not (self.role == "producer" and mprun.counter("stop").value):
            self.operations.add()
            if self.role == "producer":
                item += 1
                self.write("puts", self.number, item)
                self.jobs.put([self.number, item, "x" * self.random.choice((0, 10, 5000))])
                self.write("put", self.number, item)
            else:
                got = self.jobs.get()
                if got is None:
                    return
                self.write("got", got[0], got[1])
            self.use_dict()
            self.use_lock()

    def use_dict(self) -> None:
        key = self.random.randrange(KEYS)
        size = self.random.choice((0, 1, 100, 3000))
        what = self.random.random()
        if what < 0.5:
            self.seen[key] = (key, size, "y" * size)
        elif what < 0.7:
            self.check(key, self.seen.pop(key, None))
        elif what < 0.9:
            self.check(key, self.seen.get(key))
        else:
            self.check(key, self.seen.setdefault(key, (key, size, "y" * size)))

    def check(self, key: int, value: object) -> None:
        if value is not None and not is_whole(key, value):
            self.write("wrong", f"the value of {key} is {str(value)[:80]}")

    def use_lock(self) -> None:
        with self.lock as held:
            if held.dead_holder is not None:
                self.second.set(self.first.value)
                self.write("inherited", held.dead_holder)
            elif self.first.value != self.second.value:
                self.write("wrong", f"the lock let two in: {self.first.value} {self.second.value}")
            self.first.add()
            os.sched_yield()  # so that many are killed here
            self.second.add()


def is_whole(key: int, value: object) -> bool:
    return isinstance(value, tuple) and value == (key, len(value[2]), "y" * value[1])


class Storm:
    """The parent: starts, kills, and compares."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.children: dict[int, tuple[int, str]] = {}  # number and role, by pid
        self.count = 0
        self.killed: list[int] = []  # numbers of children
        self.dead_pids: set[int] = set()

    def start(self, role: str) -> None:
        self.count += 1
        Path(f"journal-{self.count}").touch()
        seed = self.random.getrandbits(32)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                Child(self.count, role, seed).run()
                code = 0
            finally:
                os._exit(code)
        self.children[pid] = self.count, role

    def kill_one(self) -> None:
        """After the others have done something again: no process may wait for a dead one."""
        operations = mprun.counter("operations")
        goal = operations.value + self.random.randrange(1, 40)
        deadline = time.monotonic() + 60
        while operations.value < goal:  # a counter cannot notify this process
            time.sleep(0.0002)
            if time.monotonic() > deadline:
                raise SystemExit(f"no process goes on after {len(self.killed)} were killed")
        pid = self.random.choice(list(self.children))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        number, role = self.children.pop(pid)
        self.killed.append(number)
        self.dead_pids.add(pid)
        self.start(role)

    def finish(self) -> None:
        mprun.counter("stop").set(1)
        self.reap("producer")
        for _ in range(CONSUMERS):
            mprun.queue("jobs", ITEMS_AT_ONCE).put(None)
        self.reap("consumer")

    def reap(self, role: str) -> None:
        for pid in [pid for pid, child in self.children.items() if child[1] == role]:
            _, status = os.waitpid(pid, 0)
            assert status == 0, f"a {role} ended with {status}"
            del self.children[pid]

    def compare(self) -> None:
        begun, put, got, inherited = Counter(), Counter(), Counter(), 0
        lost_by_consumers = 0
        for number in range(1, self.count + 1):
            last: dict[int, int] = {}
            for line in Path(f"journal-{number}").read_text().splitlines():
                kind, *words = line.split(" ")
                assert kind != "wrong", line
                item = tuple(map(int, words)) if kind in ("puts", "put", "got") else ()
                if kind == "got":
                    assert item[1] > last.get(item[0], 0), f"out of order: {line}"
                    last[item[0]] = item[1]
                if kind == "inherited":
                    inherited += 1
                    named = [word for word in words if word.strip("(),").isdigit()]
                    known = any(int(word.strip("(),")) in self.dead_pids for word in named)
                    assert known or "just when" in line, line
                {"puts": begun, "put": put, "got": got}.get(kind, Counter())[item] += 1
        assert all(count == 1 for count in got.values()), "an item was got twice"
        assert not got - begun, "an item was got that was never put"
        lost_by_consumers = len(put - got)
        assert lost_by_consumers <= len(self.killed), f"{lost_by_consumers} items are lost"
        assert mprun.queue("jobs", ITEMS_AT_ONCE).qsize() == 0
        seen = mprun.dict("seen")
        assert all(is_whole(key, value) for key, value in seen.items())
        assert len(seen) == len(seen.keys()) == len(set(seen.keys()))
        with mprun.lock("both"):
            pass
        print(f"{len(self.killed)} killed, {len(got)} items, {inherited} locks inherited")


def main() -> None:
    storm = Storm(int(sys.argv[2]))
    mprun.counter("operations")  # without mprun, what is forked from here on shares them
    for _ in range(PRODUCERS):
        storm.start("producer")
    for _ in range(CONSUMERS):
        storm.start("consumer")
    for _ in range(int(sys.argv[1])):
        storm.kill_one()
    storm.finish()
    storm.compare()


main()
