"""Deaths are reported as they happened: with pid, signal and time, whichever process died, and whatever ended later."""

from __future__ import annotations

import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import harness
from compiled import build
from found import GAVE_UP
from harness import Runner

PYTHON = harness.MPRUN_PYTHON

# The first of three children dies of signal 11 while it holds the lock; the others end normally.
ONE_OF_THREE = """
import multiprocessing, os, signal, time

def hold(lock):
    lock.acquire()
    print(os.getpid(), flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)

def main():
    context = multiprocessing.get_context("fork")
    lock = context.Lock()
    for target, arguments in ((hold, (lock,)), (time.sleep, (0.1,)), (time.sleep, (0.1,))):
        process = context.Process(target=target, args=arguments)
        process.start()
        process.join()
    lock.acquire()

main()
"""

# Its parent reads everything sent to it: the worker dies once the watch has seen it.
KILLED_LATER = """
import multiprocessing, os, signal, time

def task():
    print(os.getpid(), flush=True)
    time.sleep(4)
    os.kill(os.getpid(), signal.SIGKILL)

def main():
    pool = multiprocessing.get_context("fork").Pool(1)
    pool.apply_async(task)
    pool.close()
    pool.join()

main()
"""

STATIC = """
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  sem_t* const ready = mmap(NULL, sizeof *ready, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (ready == MAP_FAILED || sem_init(ready, 1, 0) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    kill(getpid(), SIGKILL);
    _exit(0);
  }
  printf("%d\\n", (int)child);
  fflush(stdout);
  sem_wait(ready);  /* it has not been asked how the child ended */
  waitpid(child, NULL, 0);
  return 0;
}
"""


def hang_of(runner: Runner, folder: Path, *program: str | Path) -> tuple[dict[str, Any], int]:
    """The report of a program that hangs, and the pid that it has printed."""
    report = folder / "hang.json"
    run = runner.start("--on-hang", "kill", "--hang-report", report, "--", *program, output=False)
    ended = run.wait(120).check(GAVE_UP)
    return json.loads(report.read_text(encoding="utf-8")), int(ended.stdout)


def check_only_death(report: dict[str, Any], pid: int, signal: int, since: float) -> None:
    (death,) = report["deaths"]
    assert (death["pid"], death["signal"]) == (pid, signal)
    at = datetime.fromisoformat(death["at"].replace("Z", "+00:00")).timestamp()
    assert since - 1 <= at <= time.time() + 1, death
    assert report["cause"]["id"] == "worker-died", report["cause"]
    assert f"process {pid} ended with signal {signal}" in report["cause"]["explanation"]


def test_the_last_child_is_not_the_one_that_died(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "three.py").write_text(ONE_OF_THREE, encoding="utf-8")
    before = time.time()
    report, pid = hang_of(runner, tmp_path, PYTHON, tmp_path / "three.py")
    check_only_death(report, pid, 11, before)


def test_a_worker_without_the_preload_library(runner: Runner, tmp_path: Path) -> None:
    """The environment is cleared: the watch has to find the processes, and how they end, on its own."""
    (tmp_path / "pool.py").write_text(KILLED_LATER, encoding="utf-8")
    before = time.time()
    report, pid = hang_of(runner, tmp_path, "env", "-i", PYTHON, tmp_path / "pool.py")
    check_only_death(report, pid, 9, before)


def test_the_child_of_a_static_program(runner: Runner, tmp_path: Path) -> None:
    """It dies at once, and no process has asked for its status yet."""
    source = tmp_path / "static.c"
    source.write_text(STATIC, encoding="utf-8")
    program = build(source, tmp_path, "-static")
    before = time.time()
    report, pid = hang_of(runner, tmp_path, program)
    check_only_death(report, pid, 9, before)
