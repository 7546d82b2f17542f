#!/usr/bin/env python3
"""Kills thousands of workers and hosts next to strangers that get their numbers; no stranger may ever be signalled.

Runs in a PID namespace with few numbers, so that a worker's number is soon a stranger's. test_chaos.py does this
for some seconds; as a program this file does it for as long as requested (README.md). Needs root, and Linux 6.14, which
gives each PID namespace its own kernel.pid_max.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
KINDS = ("fork", "spawn", "forkserver", "command")
PID_MAX = 400  # the kernel reserves the first 300 after the first round: only a hundred numbers are reused
DECOYS = 20  # at a time

SCRIPT = """
import os
import signal
import subprocess
import time


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def leave_others():
    subprocess.Popen(["sleep", "1000"])  # in the worker's process group
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    die()


def kill_host():
    if METHOD != "spawn":
        os.kill(os.getppid(), signal.SIGKILL)
    die()


def run(number):
    if number % 10 == 9:
        return number
    if number % 100 == 8:
        time.sleep(1000)  # until mprun ends it: limits.task_seconds
    if number % 100 == 7:
        kill_host()
    (leave_others if number % 100 == 6 else die)()  # what leaves its group stays to the end, with its number
"""


def job(kind: str, tasks: int) -> dict[str, object]:
    common = {
        "version": 1,
        "processes": 4,
        "chunk_size": 1,
        "inputs": {"range": tasks},
        "retries": 0,
        "limits": {"task_seconds": 3, "grace_seconds": 0.01},
        "seed": 1,
    }
    if kind == "command":
        deeds = '[ $(({} % 10)) = 9 ] || { [ $(({} % 100)) != 6 ] || sleep 1000 & kill -9 $$; }'
        return {**common, "command": ["sh", "-c", deeds]}
    return {**common, "script": "job.py:run", "start_method": kind}


class Decoys:
    """A process whose children only live for some milliseconds, each in a process group of its own."""

    def __init__(self) -> None:
        self._read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._read)
            self._serve(write)
        os.close(write)

    @staticmethod
    def _serve(write: int) -> None:
        over = []
        signal.signal(signal.SIGTERM, lambda *_: over.append(True))
        dice, ends, alive = random.Random(1), collections.Counter[str](), 0
        numbers = set()
        while not over or alive:
            while alive < DECOYS and not over:
                try:
                    pid = os.fork()
                except BlockingIOError:  # no number is free
                    break
                if pid == 0:
                    os.setpgid(0, 0)
                    signal.signal(signal.SIGTERM, signal.SIG_DFL)
                    time.sleep(dice.uniform(0.001, 0.05))  # its life, long enough for a strike
                    os._exit(0)
                numbers.add(pid)
                alive += 1
            if not alive:
                time.sleep(0.01)  # no event reports that a number becomes free
                continue
            _, status = os.wait()
            alive -= 1
            ends["well" if status == 0 else f"struck by {os.waitstatus_to_exitcode(status)}"] += 1
        os.write(write, json.dumps({"ends": ends, "numbers": sorted(numbers)}).encode())
        os._exit(0)

    def finish(self) -> dict[str, object]:
        """How the decoys ended, and which numbers they had."""
        os.kill(self.pid, signal.SIGTERM)
        with os.fdopen(self._read) as pipe:
            return json.load(pipe)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def inside(kind: str, tasks: int, mprun: str, python: str) -> int:
    """Runs the job next to the decoys; prints the outcome as JSON."""
    Path("/proc/sys/kernel/pid_max").write_text(str(PID_MAX), encoding="ascii")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "job.py").write_text(SCRIPT.replace("METHOD", repr(kind)), encoding="utf-8")
        Path(folder, "job.json").write_text(json.dumps(job(kind, tasks)), encoding="utf-8")
        decoys = Decoys()
        interpreter = [] if kind == "command" else ["--python", python]
        command = [mprun, "-q", *interpreter, "--output", f"{folder}/out", f"{folder}/job.json"]
        run = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        report = decoys.finish()
        left = [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
        ends: list[tuple[int, str]] = []
        pids = set()
        for result in lines_of(Path(folder, "out/results.jsonl")):
            ends.append((result["task"], "ok" if result["status"] == "ok" else result["error"]["type"]))
        for entry in lines_of(Path(folder, "out/journal.jsonl")):
            pids.add(entry.get("process", {}).get("pid"))
    print(
        json.dumps(
            {
                "code": run.returncode,
                "stderr": run.stderr[-2000:],
                "ends": ends,
                "decoys": report["ends"],
                "shared_numbers": len(pids & set(report["numbers"])),
                "left": [name for name in left if int(name) != decoys.pid],
            }
        )
    )
    return 0


def beside_strangers(kind: str, tasks: int, mprun: Path, python: str) -> tuple[list[str], str]:
    """Runs it all in a namespace of its own; returns what is wrong, and a summary of what was done."""
    words = ["unshare", "-pf", "--mount-proc", "--kill-child", sys.executable, __file__, "--inside"]
    words += ["--tasks", str(tasks), "--mprun", str(mprun), "--python", python, kind]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return [f"it cannot be run: {run.stderr}"], "nothing was done"
    report = json.loads(run.stdout)
    wrong = [f"a decoy was {end}: {count} times" for end, count in report["decoys"].items() if end != "well"]
    if report["code"] != 1 or sorted(task for task, _ in report["ends"]) != list(range(tasks)):
        wrong.append(f"exit code {report['code']}, {len(report['ends'])} ends of tasks\n{report['stderr']}")
    # A worker that shares a killed host dies with it.
    bearable = {"ok", "WorkerDied"} if "fork" in kind else {"ok"}
    wrong += [f"task {task}: {end}" for task, end in report["ends"] if task % 10 == 9 and end not in bearable]
    wrong += [f"task {task}: {end}" for task, end in report["ends"] if task % 10 != 9 and end == "ok"]
    if report["left"]:
        wrong.append(f"{len(report['left'])} processes are left")
    if report["shared_numbers"] < 10:
        wrong.append(f"only {report['shared_numbers']} numbers were both a worker's and a decoy's: nothing was tested")
    decoys = sum(report["decoys"].values())
    shared = report["shared_numbers"]
    done = f"{kind}: {tasks - tasks // 10} workers killed beside {decoys} decoys, {shared} numbers of both"
    return wrong, done


def can_shrink_numbers() -> bool:
    """Whether a PID namespace here has its own pid_max."""
    words = ["unshare", "-pf", "--mount-proc", "sh", "-c", f"echo {PID_MAX} > /proc/sys/kernel/pid_max"]
    before = Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii")
    if os.geteuid() != 0 or tuple(map(int, os.uname().release.split(".")[:2])) < (6, 14):
        return False
    done = subprocess.run(words, capture_output=True, check=False).returncode == 0
    return done and Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii") == before


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", default=list(KINDS), help=f"of {', '.join(KINDS)}; default: all")
    parser.add_argument("--tasks", type=int, default=3000, help="of each kind; nine in ten kill their worker (default 3000)")
    parser.add_argument("--mprun", default=HERE.parents[1] / "build/release/bin/mprun")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return inside(options.kinds[0], options.tasks, str(options.mprun), options.python)
    if not can_shrink_numbers():
        print("needs root, and Linux 6.14 or later", file=sys.stderr)
        return 2
    failed = False
    for kind in options.kinds:
        wrong, done = beside_strangers(kind, options.tasks, options.mprun, options.python)
        print("\n".join([done, *wrong]), flush=True)
        failed = failed or bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
