#!/usr/bin/env python3
"""Kills mprun with -9 at random moments and resumes it until the job is done: it must end as if undisturbed.

test_chaos.py does this for a few runs; as a program this file does it until mprun has been killed as often as requested
(README.md).
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import chaos_jobs
from chaos_jobs import KINDS, Job, Surroundings
from workers import strike

import harness  # chaos_jobs has put it on the path
from harness import Runner, Running

VICTIMS = ("guard", "supervisor", "both")
MOST_KILLS = 8  # of one run
# What `mprun resume` says of a run that was killed before its record was written: it must be started again. The
# command line with --resume does so without being asked.
NOTHING_YET = ("there is no run directory", "is not a run directory", "was killed before it began")
BESIDE = "another mprun"  # what remains of the killed mprun may still be ending
VOLATILE = ("started", "seconds", "sessions", "tasks_per_second", "processes", "notices", "command_exits")


def outcome(run_dir: Path) -> dict[str, Any]:
    """Everything in a run directory that is the same from run to run."""
    keys = ("task", "status", "value", "error", "tensors")
    results = chaos_jobs.lines_of(run_dir / "results.jsonl")
    summary = json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))
    for name in VOLATILE:
        summary.pop(name, None)
    del summary["counts"]["retried"]
    tensors = run_dir / "tensors"
    files = sorted(tensors.iterdir()) if tensors.exists() else []
    return {
        "results": [{key: line[key] for key in keys if key in line} for line in results],
        "summary": summary,
        "tensors": {file.name: file.read_bytes() for file in files},
        "files": sorted(file.name for file in run_dir.iterdir()),
    }


class Restarts:
    """Runs one job again and again, killing and resuming it. Owns the outcome of an undisturbed run."""

    def __init__(self, job: Job, folder: Path, seed: int) -> None:
        self.done: collections.Counter[str] = collections.Counter()
        self.job = job
        self._folder = folder
        self._dice = random.Random(seed)
        self._surroundings = Surroundings(folder)
        self._runner = Runner(harness.MPRUN_BIN, folder)
        self._spec = folder / "job.json"
        self._way = ""
        begun = time.monotonic()
        run = self._begin(folder / "undisturbed").wait(120).check(self._exit_code())
        self._seconds = time.monotonic() - begun
        wrong = chaos_jobs.what_is_wrong(job, run.run_dir) + self._surroundings.left(run.run_dir)
        assert not wrong, wrong
        self._expected = outcome(run.run_dir)

    def __str__(self) -> str:
        return ", ".join(f"{count} {what}" for what, count in sorted(self.done.items()))

    def kills(self) -> int:
        """How often mprun has been killed."""
        return sum(count for what, count in self.done.items() if what.startswith("kills of"))

    def once(self) -> list[str]:
        """One run, killed at least once; returns what is wrong with it in the end."""
        run_dir = self._folder / "run"
        shutil.rmtree(run_dir, ignore_errors=True)
        self.done["runs"] += 1
        running = self._begin(run_dir)
        kills, deadline = 0, time.monotonic() + 300
        while True:
            disturbed = kills < MOST_KILLS and (kills == 0 or self._dice.random() < 0.5)
            killed = disturbed and self._kill(running)
            returncode = running.wait(180).returncode
            refused = running.stderr if returncode == 2 else ""
            if returncode == self._exit_code() or (not killed and not refused) or time.monotonic() > deadline:
                break
            kills += killed
            if self._way == "resume" and any(words in refused for words in NOTHING_YET):
                self.done["restarted"] += 1
                shutil.rmtree(run_dir, ignore_errors=True)
                running = self._begin(run_dir)
            elif not refused or BESIDE in refused:
                running = self._resume(run_dir)
            else:
                break
        if returncode != self._exit_code():
            message = running.stderr[-2000:]
            return [f"after {kills} kills mprun ended with {returncode}, not {self._exit_code()}:\n{message}"]
        wrong = chaos_jobs.what_is_wrong(self.job, run_dir) + self._surroundings.left(run_dir)
        got = outcome(run_dir)
        return wrong + [
            f"{what} differ from those of an undisturbed run: {str(got[what])[:500]}"
            for what in got
            if got[what] != self._expected[what]
        ]

    def _exit_code(self) -> int:
        return 1 if any(map(self.job.fails, range(self.job.tasks))) else 0

    def _begin(self, run_dir: Path) -> Running:
        spec = self._spec if self._spec.exists() else self.job.spec()
        words = ("-q", "--output", run_dir)
        return self._runner.start_job(spec, *words, scripts=chaos_jobs.SCRIPTS, env=self._surroundings.env)

    def _kill(self, running: Running) -> bool:
        """At a random moment, half of them early; false if it has ended before. Always draws equally often."""
        victim, moment = self._dice.choice(VICTIMS), self._dice.uniform(0, self._seconds) * self._dice.choice((0.1, 1))
        try:
            running.process.wait(moment)
            return False
        except subprocess.TimeoutExpired:
            pass
        supervisors = [process for process in running.children() if process.ppid == running.pid]
        hit = False
        if victim != "supervisor":
            running.process.kill()
            hit = True
        for supervisor in supervisors if victim != "guard" else []:
            pidfd = strike(supervisor, signal.SIGKILL)
            if pidfd is not None:
                os.close(pidfd)
                hit = True
        self.done[f"kills of {victim}" if hit else "missed"] += 1
        return hit

    def _resume(self, run_dir: Path) -> Running:
        """By either of the two ways, at once or when nothing of the killed mprun is left."""
        self._way, patient = self._dice.choice(("resume", "--resume")), self._dice.random() < 0.5
        if patient:
            harness.wait_until(lambda: not self._surroundings.processes(), timeout=30, what="the end of the killed run")
        self.done["resumes"] += 1
        env = self._surroundings.env
        if self._way == "resume":
            return self._runner.start("resume", "-q", run_dir, output=False, env=env)
        return self._runner.start_job(self._spec, "-q", "--resume", "--output", run_dir, env=env)


def short_job(kind: str) -> Job:
    """A job of that kind that takes a second or two."""
    if kind == "ranks":
        return Job(kind, tasks=2, processes=2, seconds=1, paced=False)
    return Job(kind, tasks=150 if kind == "command" else 600, processes=2, seconds=1.2, paced=False, failures=True)


def restart(kind: str, folder: Path, seed: int, kills: int) -> tuple[list[str], str]:
    """Runs of that kind until mprun has been killed so often; returns what is wrong and what was done."""
    chaos_jobs.without_core_files()
    restarts = Restarts(short_job(kind), folder, seed)
    wrong: list[str] = []
    while not wrong and restarts.kills() < kills:
        wrong = restarts.once()
        harness.reap_zombies()
    return wrong, str(restarts)


def main() -> int:
    """Each kind in turn; a line each, then what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[[], *KINDS], metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--kills", type=int, default=40, help="of mprun, for each kind (%(default)s)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="to make the same choices again")
    options = parser.parse_args()
    harness.become_subreaper()
    return chaos_jobs.try_each(
        options.kinds or list(KINDS),
        options.seed,
        lambda kind, folder: restart(kind, folder, options.seed, options.kills),
    )


if __name__ == "__main__":
    sys.exit(main())
