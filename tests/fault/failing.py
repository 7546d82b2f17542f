#!/usr/bin/env python3
"""Runs mprun with one of its system calls failing and reports what is wrong with how it ended.

The test test_failing_calls.py tries representatives; as a program this file tries all that a small job reaches
(README.md).
"""

from __future__ import annotations

import argparse
import collections
import errno
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import harness  # noqa: E402

HERE = Path(__file__).resolve().parent
LONGEST_RUN = 45  # seconds; with nothing failing a run takes less than one
TASKS = 12

# The errors that each call can fail with. Nothing is expected of calls that are not listed.
ERRORS: dict[str, tuple[int, ...]] = {
    "open": (errno.EMFILE, errno.EACCES),
    "openat": (errno.EMFILE, errno.EACCES),
    "fopen": (errno.EMFILE,),
    "fopen64": (errno.EMFILE,),
    "fcntl": (errno.EMFILE,),
    "close": (errno.EIO,),
    "read": (errno.EIO,),
    "pread": (errno.EIO,),
    "pwrite": (errno.EIO,),
    "write": (errno.ENOSPC, errno.EIO),
    "writev": (errno.ENOSPC,),
    "ftruncate": (errno.ENOSPC,),
    "fallocate": (errno.ENOSPC,),
    "fsync": (errno.EIO,),
    "fdatasync": (errno.EIO,),
    "lseek": (errno.EINVAL,),
    "dup2": (errno.EMFILE,),
    "mkdir": (errno.ENOSPC,),
    "rmdir": (errno.EIO,),
    "rename": (errno.ENOSPC,),
    "renameat": (errno.ENOSPC,),
    "unlink": (errno.EIO,),
    "unlinkat": (errno.EIO,),
    "symlink": (errno.ENOSPC,),
    "access": (errno.EACCES,),
    "chdir": (errno.EACCES,),
    "getcwd": (errno.ENOENT,),
    "realpath": (errno.EACCES,),
    "readlink": (errno.EACCES,),
    "readlinkat": (errno.EACCES,),
    "stat": (errno.EACCES,),
    "lstat": (errno.EACCES,),
    "fstat": (errno.EIO,),
    "fstatat": (errno.EACCES,),
    "statvfs": (errno.EIO,),
    "opendir": (errno.EMFILE,),
    "fdopendir": (errno.ENOMEM,),
    "readdir": (errno.EIO,),
    "memfd_create": (errno.ENOMEM, errno.ENOSYS),
    "mmap": (errno.ENOMEM,),
    "process_vm_readv": (errno.EPERM,),
    "fork": (errno.EAGAIN,),
    "vfork": (errno.EAGAIN, errno.ENOMEM),
    "execve": (errno.ENOMEM,),
    "waitid": (errno.ECHILD,),
    "waitpid": (errno.ECHILD,),
    "kill": (errno.EPERM,),
    "setpgid": (errno.EPERM,),
    "setsid": (errno.EPERM,),
    "getrlimit": (errno.EPERM,),
    "setrlimit": (errno.EPERM,),
    "close_range": (errno.ENOSYS,),
    "sched_getaffinity": (errno.EINVAL,),
    "prctl": (errno.EINVAL,),
    "syscall": (errno.ENOSYS, errno.EMFILE),
    "pipe2": (errno.EMFILE, errno.ENFILE),
    "socketpair": (errno.EMFILE,),
    "socket": (errno.EMFILE,),
    "bind": (errno.EADDRINUSE,),
    "setsockopt": (errno.ENOPROTOOPT,),
    "send": (errno.EPIPE,),
    "sendmsg": (errno.ETOOMANYREFS, errno.EPIPE),
    "sendto": (errno.ECONNREFUSED,),
    "recv": (errno.ECONNRESET,),
    "recvmsg": (errno.ENOMEM,),
    "epoll_create1": (errno.EMFILE,),
    "epoll_ctl": (errno.ENOSPC,),
    "epoll_wait": (errno.EINVAL,),
    "poll": (errno.ENOMEM,),
    "signalfd": (errno.EMFILE,),
    "sigwaitinfo": (errno.EINVAL,),
    "nanosleep": (errno.EINVAL,),
}

# Task 5 kills its worker once, so that the replacement of workers is reached as well.
SCRIPT = """
import os
import sys


def square(number):
    print("task", number, file=sys.stderr)
    if number == 5:
        try:
            os.close(os.open("died", os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), 9)
        except FileExistsError:
            pass
    return number * number
"""
TENSORS = """
import numpy


def square(number):
    return numpy.full(3, number * number)
"""
PROGRAM = "import subprocess, sys; subprocess.run(['true'], check=True); print('done'); sys.exit(7)"
LIMITS = {"join_seconds": 5, "grace_seconds": 1}
COMMON = {"processes": 2, "inputs": {"range": TASKS}, "limits": LIMITS}


def function_job(start_method: str) -> dict[str, Any]:
    return {**COMMON, "script": "job.py:square", "start_method": start_method}


JOBS: dict[str, dict[str, Any]] = {
    "fork": function_job("fork"),
    "spawn": function_job("spawn"),
    "forkserver": function_job("forkserver"),
    "command": {**COMMON, "limits": {"grace_seconds": 1}, "command": ["echo", "{}"]},
    "tensors": {**COMMON, "script": "tensors.py:square", "shared": {"s": {"shape": [4], "dtype": "float32"}}},
}
SCENARIOS = (*JOBS, "program")

# Exit codes of the contract for an end caused by a lack of resources.
GOOD_CODES = {0, 1, 2, 3, 125}
GOOD_CODES_OF_PROGRAM = {2, 3, 7, 125, 126, 127}
# Not human-readable.
RAW = re.compile(r"internal fault|terminate called|[Aa]ssertion|std::|basic_string|json\.exception|Traceback")


@dataclass(frozen=True)
class Site:
    """A place in mprun that calls into the kernel."""

    call: str
    mark: str  # its name in faults.h
    frames: tuple[int, ...]


@dataclass
class Outcome:
    """How mprun ended, and what is wrong with that."""

    code: int | None = None  # None: it did not end
    seconds: float = 0.0
    stderr: str = ""
    struck: bool = False  # whether the fault was met at all
    complaints: list[str] = field(default_factory=list)


def build_library(folder: Path) -> Path:
    """Compiles the library that makes calls fail."""
    library = folder / "libfaults.so"
    sources = [str(HERE / "faults.c"), str(HERE / "failing_calls.c")]
    command = ["cc", "-shared", "-fPIC", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, "-o", str(library), *sources, "-ldl"], check=True)
    return library


def environment(library: Path, plan: str | None = None, log: Path | None = None) -> dict[str, str]:
    """The variables that faults.h reads; `plan` has the form of FAULT_CALL."""
    found = {"LD_PRELOAD": str(library), "FAULT_PROGRAM": str(harness.MPRUN_BIN.resolve())}
    if plan:
        found["FAULT_CALL"] = plan
    if log:
        found["FAULT_LOG"] = str(log)
    return found


def start(library: Path, folder: Path, scenario: str, plan: str | None) -> harness.Running:
    """Starts mprun in an empty folder."""
    (folder / "temporary").mkdir()
    env = {**environment(library, plan, folder / "faults.log"), "TMPDIR": str(folder / "temporary")}
    runner = harness.Runner(harness.MPRUN_BIN, folder)
    if scenario == "program":
        return runner.start("--", harness.MPRUN_PYTHON, "-c", PROGRAM, output=False, env=env)
    scripts = {"job.py": SCRIPT, "tensors.py": TENSORS}
    return runner.start_job(JOBS[scenario], scripts=scripts, env=env)


def run(library: Path, scenario: str, plan: str | None = None) -> Outcome:
    """One run; `plan` has the form of FAULT_CALL."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory(prefix="mprun-fault-") as name:
        folder = Path(name)
        memory = harness.shared_memory()
        begun = time.monotonic()
        running = start(library, folder, scenario, plan)
        try:
            ended = running.wait(LONGEST_RUN)
            outcome.code, outcome.stderr = ended.returncode, ended.stderr
        except AssertionError as hang:
            outcome.stderr = str(hang)
            outcome.complaints.append("hangs")
        outcome.seconds = time.monotonic() - begun
        log = harness.marks(folder / "faults.log")
        outcome.struck = any(line.startswith("fault ") for line in log)
        if running.run:
            outcome.complaints += complaints(scenario, running.run, folder)
        new = harness.shared_memory() - memory
        try:  # a tracker of a concurrent test may be about to remove it
            harness.wait_until(lambda: not harness.unused_shared_memory(new), timeout=15)
        except AssertionError:
            left = sorted(harness.unused_shared_memory(new))
            outcome.complaints += [f"left shared memory {entry}" for entry in left]
        harness.kill_all(harness.living_descendants())
        harness.reap_zombies()
    return outcome


def complaints(scenario: str, ended: harness.Run, folder: Path) -> Iterator[str]:
    """What is wrong with an end."""
    code = ended.returncode
    good = GOOD_CODES_OF_PROGRAM if scenario == "program" else GOOD_CODES
    if code not in good:
        yield f"ended with {code}"
    if code not in (0, 7) and not ended.stderr.strip():
        yield f"ended with {code} without a message"
    if RAW.search(ended.stderr):
        yield "printed a raw message"
    yield from (f"left {survivor}" for survivor in ended.survivors)
    yield from (f"left {path.name} in TMPDIR" for path in (folder / "temporary").iterdir())
    yield from (f"left {path.name}" for path in folder.rglob("*.tmp"))
    yield from (f"left {path.name}" for path in folder.rglob(".latest*"))
    if scenario == "program":
        if code == 7 and ended.stdout != "done\n":
            yield "the program's output is not whole"
        return
    yield from wrong_results(scenario, ended)


def wrong_results(scenario: str, ended: harness.Run) -> Iterator[str]:
    """Every line is whole and true; where all went well none is missing."""
    path = ended.run_dir / "results.jsonl"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    seen = collections.Counter()
    if text and not text.endswith("\n"):
        yield "the last line is torn"
    for line in text.splitlines():
        try:
            result = json.loads(line)
            number, status = result["task"], result["status"]
        except (ValueError, KeyError, TypeError):
            yield f"no result: {line[:80]!r}"
            continue
        seen[number] += 1
        if status != "ok":
            if ended.returncode == 0:
                yield f"task {number} {status}, yet mprun ended with 0"
        elif scenario in ("fork", "spawn", "forkserver") and result["value"] != number * number:
            yield f"wrong value of task {number}: {result['value']!r}"
    yield from (f"task {number} {count} times" for number, count in seen.items() if count != 1)
    if ended.returncode in (0, 1) and len(seen) != TASKS:
        yield f"{len(seen)} of {TASKS} results, yet mprun ended with {ended.returncode}"


def sites(library: Path, scenario: str) -> list[Site]:
    """Every place that such a run reaches, in order."""
    with tempfile.TemporaryDirectory(prefix="mprun-fault-") as name:
        start(library, Path(name), scenario, None).wait(LONGEST_RUN)
        return read_sites(Path(name, "faults.log"))


def read_sites(log: Path) -> list[Site]:
    """The sites that FAULT_LOG lists for a run in which nothing failed."""
    found = []
    for line in harness.marks(log):
        kind, call, mark, *frames = line.split()
        if kind == "site":
            found.append(Site(call, mark, tuple(int(frame, 16) for frame in frames)))
    return found


def plan_for(site: Site, error: int, when: str) -> str:
    """FAULT_CALL for the first call from that place; `when`: once or forever."""
    return f"{site.call}:{error}:1:{when}:{site.mark}"


# --- by hand -------------------------------------------------------------------------------------


def names_of(found: list[Site]) -> dict[int, str]:
    """The functions of mprun that contain the frames."""
    frames = sorted({frame for site in found for frame in site.frames})
    words = ["addr2line", "-Cfe", str(harness.MPRUN_BIN), *(hex(frame - 1) for frame in frames)]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    names = [re.sub(r"\(anonymous namespace\)::|mprun::|\(.*", "", line) for line in lines[::2]]
    return dict(zip(frames, names))


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes every system call of mprun's fail in turn.")
    parser.add_argument("scenarios", nargs="*", default=list(SCENARIOS), metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--call", action="append", help="only this call; may be repeated")
    parser.add_argument("--shard", default="0/1", help="K/N: only every N-th run, from the K-th on")
    options = parser.parse_args()
    harness.become_subreaper()
    shard, shards = (int(number) for number in options.shard.split("/"))
    number = bad = 0
    with tempfile.TemporaryDirectory(prefix="mprun-fault-") as folder:
        library = build_library(Path(folder))
        for scenario in options.scenarios:
            found = [site for site in sites(library, scenario) if not options.call or site.call in options.call]
            names = names_of(found)
            for site in found:
                for error in ERRORS.get(site.call, ()):
                    for when in ("once", "forever"):
                        number += 1
                        if number % shards == shard:
                            outcome = run(library, scenario, plan_for(site, error, when))
                            bad += print_row(scenario, site, names, error, when, outcome)
            for plan in ("short", "storm"):
                if not options.call and shard == 0:
                    bad += print_plan(scenario, plan, run(library, scenario, plan))
    print(f"{number} runs in all, {bad} bad here")
    return 1 if bad else 0


def print_row(scenario: str, site: Site, names: dict[int, str], error: int, when: str, outcome: Outcome) -> int:
    """Prints a row of the table; returns 1 for a bad one."""
    where = " < ".join(names[frame] for frame in site.frames[:4])
    reason = os.strerror(error)
    named = "named" if reason in outcome.stderr else "-"
    struck = "" if outcome.struck else " (not met)"
    words = "; ".join(outcome.complaints)
    mark = "BAD " if words else "good"
    last = outcome.stderr.strip().splitlines()[:1]
    print(
        f"{mark} {scenario} {site.call} {errno.errorcode[error]} {when} at {where}: code {outcome.code}, "
        f"{outcome.seconds:.1f} s, {named}{struck} | {words} | {last} | {plan_for(site, error, when)}",
        flush=True,
    )
    return 1 if words else 0


def print_plan(scenario: str, plan: str, outcome: Outcome) -> int:
    words = "; ".join(outcome.complaints)
    wrong = bool(words) or outcome.code not in (0, 7)
    print(f"{'BAD ' if wrong else 'good'} {scenario} {plan}: code {outcome.code}, {outcome.seconds:.1f} s | {words} | {outcome.stderr[:300]!r}", flush=True)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
