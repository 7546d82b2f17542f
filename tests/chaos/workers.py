#!/usr/bin/env python3
"""Kills, stops and segfaults the workers and hosts of a job while it runs; its results must be exact.

test_chaos.py does this for some seconds; as a program this file does it for as long as requested (README.md).
"""

from __future__ import annotations

import argparse
import collections
import heapq
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

import chaos_jobs
from chaos_jobs import AT_WORK, KINDS, Job, Surroundings

import harness  # chaos_jobs has put it on the path
from harness import Process, Running

DEEDS = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP, "segfaulted": signal.SIGSEGV}
HOST_SHARE = 0.1  # of the strikes
SLOW_HOST_SHARE = 0.02  # where hosts load for seconds: if struck more often, none would ever be ready
LONGEST_STOP = 3.0  # seconds


class Choice(NamedTuple):
    """The next strike."""

    deed: str  # of DEEDS
    at_host: bool
    which: float  # of the processes there are: from 0 to 1
    seconds: float  # until a stopped process continues


class Striker:
    """Strikes processes of one run, again and again. Owns a pidfd of each process that it has stopped."""

    def __init__(self, running: Running, job: Job, seed: int) -> None:
        self.done: collections.Counter[str] = collections.Counter()
        self.missed = 0
        self.seconds = 0.0
        self._running = running
        self._method = KINDS[job.kind][0]
        self._host_share = SLOW_HOST_SHARE if job.kind == "tensors" else HOST_SHARE
        self._dice = random.Random(seed)
        self._stopped: list[tuple[float, int]] = []  # a heap: when the process is continued, its pidfd

    def __str__(self) -> str:
        deeds = ", ".join(f"{count} {deed}" for deed, count in sorted(self.done.items()))
        return (
            f"{sum(self.done.values())} strikes in {self.seconds:.0f} s ({deeds}),"
            f" {self.missed} times there was no process"
        )

    def strike_for(self, seconds: float, a_second: float) -> None:
        """Strikes until the time is over or mprun has ended; afterwards no process is stopped."""
        begun = time.monotonic()
        number, choice = 0, None
        while (now := time.monotonic()) < begun + seconds and self._running.process.poll() is None:
            self._wake(now)
            if now >= begun + number / a_second:
                self.missed += choice is not None
                number += 1
                choice = self._choose()
            if choice and self._strike(choice, now):
                choice = None
            time.sleep(0.005)
        self._wake(float("inf"))
        self.seconds = time.monotonic() - begun

    def _wake(self, until: float) -> None:
        while self._stopped and self._stopped[0][0] <= until:
            pidfd = heapq.heappop(self._stopped)[1]
            send(pidfd, signal.SIGCONT)
            os.close(pidfd)

    def _choose(self) -> Choice:
        """Always draws the same number of times, so that a seed means the same choices each time."""
        return Choice(
            self._dice.choice(sorted(DEEDS)),
            self._dice.random() < self._host_share,
            self._dice.random(),
            self._dice.uniform(0, LONGEST_STOP),
        )

    def _strike(self, choice: Choice, now: float) -> bool:
        """False if there is no such process, or the chosen one is just ending."""
        deed = choice.deed
        hosts, workers = self._processes()
        victims = hosts if choice.at_host and hosts else workers
        if deed == "segfaulted" and self._method:
            victims, others = at_work(victims, workers), victims
            if not victims:
                deed, victims = "killed", others
        if not victims:
            return False
        victim = victims[int(choice.which * len(victims))]
        pidfd = strike(victim, DEEDS[deed])
        if pidfd is None:
            return False
        self.done[f"{'hosts' if victim in hosts else 'workers'} {deed}"] += 1
        if deed == "stopped":
            heapq.heappush(self._stopped, (now + choice.seconds, pidfd))
        else:
            os.close(pidfd)
        return True

    def _processes(self) -> tuple[list[Process], list[Process]]:
        """The run's living hosts and workers (or commands), in the order of their numbers."""
        ours = sorted(self._running.children(), key=lambda process: process.pid)
        supervisors = {process.pid for process in ours if process.ppid == self._running.pid}
        first = [process for process in ours if process.ppid in supervisors]
        if self._method not in ("fork", "forkserver"):
            return [], first
        hosts = {process.pid for process in first}
        return first, [process for process in ours if process.ppid in hosts]


def at_work(victims: list[Process], workers: list[Process]) -> list[Process]:
    """Processes that have ended a task, or whose worker has: a process that segfaults again and again before that is a
    failed start, which rightly ends a job."""
    busy = [worker for worker in workers if worker.name == AT_WORK]
    pids = {worker.pid for worker in busy} | {worker.ppid for worker in busy}
    return [victim for victim in victims if victim.pid in pids]


def strike(process: Process, number: int) -> int | None:
    """Signals a listed process unless it has ended; returns its pidfd, which the caller owns."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    # The number may belong to another process by now; the pidfd stays with one process.
    still = harness.find_process(process.pid)
    if still and still.alive and still.ppid == process.ppid and send(pidfd, number):
        return pidfd
    os.close(pidfd)
    return None


def send(pidfd: int, number: int) -> bool:
    """Signals a process unless it has ended."""
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        return False
    return True


def torment(job: Job, folder: Path, seed: int, a_second: float = 10) -> tuple[list[str], str]:
    """Runs the job in the folder under strikes; returns what is wrong with how it ended, and what was done."""
    chaos_jobs.without_core_files()
    surroundings = Surroundings(folder)
    runner = harness.Runner(harness.MPRUN_BIN, folder)
    try:
        running = runner.start_job(job.spec(), "-q", scripts=chaos_jobs.SCRIPTS, env=surroundings.env)
        results = running.run_dir / "results.jsonl"
        harness.wait_until(
            lambda: (results.exists() and results.stat().st_size) or running.process.poll() is not None,
            timeout=60,
            what="the first result",
        )
        striker = Striker(running, job, seed)
        striker.strike_for(job.seconds, a_second)
        try:
            run = running.wait(job.seconds * 4 + 120)
        except AssertionError as late:
            return [str(late)], str(striker)
    finally:
        runner.finish()
    if run.returncode != 0:
        return [f"exit code {run.returncode}:\n{run.stderr[-3000:]}"], str(striker)
    wrong = chaos_jobs.what_is_wrong(job, run.run_dir) + surroundings.left(run.run_dir)
    return wrong + [f"outlived mprun: {process}" for process in run.survivors], f"{striker}; {outcome(run)}"


def outcome(run: harness.Run) -> str:
    """Summarizes the records in one line."""
    summary = run.summary()
    ends = collections.Counter(
        f"{process['role']}s by signal {process['signal']}" for process in summary["processes"] if process.get("signal")
    )
    ends.update({f"commands by {end}": count for end, count in summary.get("command_exits", {}).items() if end != "0"})
    summed = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    counts = summary["counts"]
    most = max(line["attempt"] for line in run.results())
    return (
        f"{counts['ok']} of {counts['total']} tasks ok in {summary['seconds']:.0f} s, {counts['retried']} retries,"
        f" one task {most} times; ended: {summed}"
    )


def main() -> int:
    """Each kind in turn; a line each, then what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[[], *KINDS], metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--seconds", type=float, default=300, help="how long each job is struck (%(default)s)")
    parser.add_argument("--tasks", type=int, default=100_000, help="of each job (%(default)s)")
    parser.add_argument("--processes", type=int, default=8, help="workers of each job (%(default)s)")
    parser.add_argument("--rate", type=float, default=10, help="strikes a second (%(default)s)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="to make the same choices again")
    options = parser.parse_args()
    harness.become_subreaper()
    kinds = options.kinds or [kind for kind in KINDS if kind != "ranks"]
    return chaos_jobs.try_each(
        kinds,
        options.seed,
        lambda kind, folder: torment(
            Job(kind, options.tasks, options.processes, options.seconds), folder, options.seed, options.rate
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
