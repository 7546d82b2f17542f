"""The jobs that chaos strikes, and what their run directories must hold in the end."""

from __future__ import annotations

import collections
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import harness  # noqa: E402

# The name that a worker takes from its second task on: by then its first result is on its way to mprun.
AT_WORK = "at work"

# Tasks are paced, so that a job takes the requested time; a task that is late catches up.
FUNCTIONS = f"""
import ctypes
import os
import time

tasks_begun = 0


def keep_pace(number):
    global tasks_begun
    tasks_begun += 1
    if tasks_begun == 2:
        with open("/proc/self/comm", "w") as name:
            name.write("{AT_WORK}")
    pause = float(os.environ["CHAOS_PAUSE"])
    if "CHAOS_BEGUN" in os.environ:
        due = float(os.environ["CHAOS_BEGUN"]) + number * float(os.environ["CHAOS_TASK_SECONDS"])
        pause = min(max(due - time.monotonic(), 0), 0.05)
    time.sleep(pause)
    if number % 997 == 5 and os.environ["MPRUN_ATTEMPT"] == "1":
        ctypes.string_at(0)  # SIGSEGV


def square(number):
    keep_pace(number)
    if number % 499 == 7 and os.environ.get("CHAOS_FAILURES"):
        raise ValueError(f"task {{number}} never succeeds")
    return [number * number, str(number)]
"""

ARRAYS = """
import numpy

import functions


def rows(number):
    return {"square": functions.square(number), "rows": numpy.full(8, number * 3, dtype="i8")}
"""

TORCH = """
import torch

import functions


def rows(number):
    return {"square": functions.square(number), "rows": torch.full((8,), number * 3, dtype=torch.int64)}
"""

RANKS = """
import os
import time

import mprun

time.sleep(float(os.environ["CHAOS_PAUSE"]))
mprun.barrier()
mprun.result([mprun.rank() ** 2, str(mprun.rank())])
"""

SCRIPTS = {"functions.py": FUNCTIONS, "arrays.py": ARRAYS, "tensors.py": TORCH, "ranks.py": RANKS}

COMMAND = """
sleep "$CHAOS_PAUSE"
if [ $(({} % 997)) = 5 ] && [ "$MPRUN_ATTEMPT" = 1 ]; then kill -SEGV $$; fi
echo $(({} * {}))
"""


@dataclass(frozen=True)
class Job:
    """A kind of job with the requested number of tasks."""

    kind: str  # of KINDS
    tasks: int
    processes: int
    seconds: float  # that its tasks should take together
    paced: bool = True  # by the clock since the job began; else each task takes equally long
    failures: bool = False  # some tasks never succeed

    def spec(self) -> dict[str, Any]:
        """job.json; a paced job must be run at once."""
        method, what = KINDS[self.kind]
        each = self.seconds / self.tasks
        env = {"CHAOS_PAUSE": str(each * self.processes / 2)}  # half: everything else takes time, too
        if self.paced:
            env |= {"CHAOS_BEGUN": str(time.monotonic()), "CHAOS_TASK_SECONDS": str(each)}
        if self.failures:
            env["CHAOS_FAILURES"] = "1"
        spec: dict[str, Any] = {
            "processes": self.processes,
            "env": env,
        }
        if what == "ranks":
            return spec | {"script": "ranks.py"}
        spec["inputs"] = {"range": self.tasks}
        # A worker killed from outside is not to blame: a task may be hit any number of times.
        spec["retries"] = {"on_death": 1000, "on_error": 1000 if what == "command" else 0}
        if what == "command":
            return spec | {"command": ["sh", "-c", COMMAND]}
        return spec | {"script": what, "start_method": method}

    def fails(self, task: int) -> bool:
        """Whether that task always fails."""
        return self.failures and ":" in KINDS[self.kind][1] and task % 499 == 7

    def expected(self, task: int) -> Any:
        """The value of a task."""
        square = [task * task, str(task)]
        what = KINDS[self.kind][1]
        if what == "command":
            return {"exit_code": 0, "stdout": f"{task * task}\n", "stderr": ""}
        if what.endswith(":rows"):
            return {"square": square, "rows": {"tensor": "tensors/rows.npy", "row": task}}
        return square


# The start method and what it runs.
KINDS = {
    "fork": ("fork", "functions.py:square"),
    "spawn": ("spawn", "functions.py:square"),
    "forkserver": ("forkserver", "functions.py:square"),
    "command": ("", "command"),
    "arrays-fork": ("fork", "arrays.py:rows"),
    "arrays-spawn": ("spawn", "arrays.py:rows"),
    "arrays-forkserver": ("forkserver", "arrays.py:rows"),
    "tensors": ("fork", "tensors.py:rows"),
    "ranks": ("", "ranks"),
}


def without_core_files() -> None:
    """A process that segfaults leaves no core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The lines of a .jsonl file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def try_each(kinds: Sequence[str], seed: int, attempt: Callable[[str, Path], tuple[list[str], str]]) -> int:
    """For each kind, prints what an attempt in a new folder did and what is wrong; 1 if anything is."""
    failed = 0
    for kind in kinds:
        folder = Path(tempfile.mkdtemp(prefix="mprun-chaos-"))
        wrong, done = attempt(kind, folder)
        print(f"{kind}: seed {seed}: {'WRONG' if wrong else 'exact'}: {done}", flush=True)
        for complaint in wrong:
            print(f"  {complaint}", flush=True)
        if wrong:
            failed = 1
            print(f"  all of it is in {folder}", flush=True)
        else:
            shutil.rmtree(folder)
        harness.reap_zombies()
    return failed


# --- what must hold ----------------------------------------------------------------------------


def wrong_results(job: Job, run_dir: Path) -> list[str]:
    """Complaints unless each task is there once, in order, with its own value."""
    lines = lines_of(run_dir / "results.jsonl")
    if [line["task"] for line in lines] != list(range(job.tasks)):
        counted = collections.Counter(line["task"] for line in lines)
        odd = [task for task in range(job.tasks) if counted[task] != 1][:5]
        return [f"results.jsonl has {len(lines)} lines for {job.tasks} tasks; not just once: {odd or 'in disorder'}"]
    wrong = []
    for task, line in enumerate(lines):
        good = ("failed", None) if job.fails(task) else ("ok", job.expected(task))
        if (line["status"], line.get("value")) != good:
            wrong.append(f"task {task}: {json.dumps(line)[:400]}")
    return wrong[:5]


def wrong_tensors(job: Job, run_dir: Path) -> list[str]:
    """Complaints unless every task's row is what it returned."""
    if not KINDS[job.kind][1].endswith(":rows"):
        return []
    rows = numpy.load(run_dir / "tensors" / "rows.npy")
    good = numpy.repeat(numpy.arange(job.tasks, dtype="i8")[:, None] * 3, 8, axis=1)
    for task in range(job.tasks):
        if job.fails(task):
            good[task] = 0
    return [] if numpy.array_equal(rows, good) else [f"rows.npy {rows.shape} {rows.dtype} is not exact"]


def wrong_records(job: Job, run_dir: Path) -> list[str]:
    """Complaints unless summary, joblog and journal agree with the results."""
    summary = json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))
    results = lines_of(run_dir / "results.jsonl")
    journal = lines_of(run_dir / "journal.jsonl")
    failed = sum(map(job.fails, range(job.tasks)))
    counts = {"total": job.tasks, "ok": job.tasks - failed, "failed": failed, "cancelled": 0, "not_run": 0}
    attempts = sum(line["attempt"] - 1 for line in results)
    wrong = []
    if {name: summary["counts"][name] for name in counts} != counts:
        wrong.append(f"summary.json counts {summary['counts']}, not {counts}")
    if summary["sessions"] == 1 and summary["counts"]["retried"] != attempts:
        wrong.append(f"{summary['counts']['retried']} retries counted, but {attempts} by the results' attempts")
    if summary["counts"]["retried"] != sum("retried" in line for line in journal):
        wrong.append("the journal has another number of retries")
    if summary["hangs"] or (run_dir / "hangs").exists():
        wrong.append(f"hangs were found: {summary['hangs']}")
    exit_code = 1 if failed else 0
    if summary["exit_code"] != exit_code or journal[-1].get("ended", {}).get("exit_code") != exit_code:
        wrong.append(f"exit codes: {summary['exit_code']} in the summary, the journal ends with {journal[-1]}")
    return wrong + wrong_processes(summary, journal) + wrong_joblog(job, run_dir, summary["sessions"] > 1)


def wrong_processes(summary: dict[str, Any], journal: list[dict[str, Any]]) -> list[str]:
    """Complaints unless summary and journal list the same processes."""
    listed = [line["process"] for line in journal if "process" in line]
    commands = sum(process["role"] == "command" for process in listed)
    ended = sum(summary.get("command_exits", {}).values())
    if commands != ended:
        return [f"{commands} commands in the journal, {ended} in the summary"]
    pids = sorted(process["pid"] for process in listed if process["role"] != "command")
    if pids != sorted(process["pid"] for process in summary["processes"]):
        return [f"{len(pids)} processes in the journal, {len(summary['processes'])} in the summary, or others"]
    return []


def wrong_joblog(job: Job, run_dir: Path, resumed: bool) -> list[str]:
    """Complaints unless joblog.tsv has each task with how it ended: once, or, in a resumed run, as often as it ended
    without a recorded result."""
    _, *rows = (run_dir / "joblog.tsv").read_text(encoding="utf-8").splitlines()
    columns = [row.split("\t") for row in rows]
    ends = {int(row[0]): (row[6] != "0", row[7]) for row in columns}
    good = {task + 1: (job.fails(task), "0") for task in range(job.tasks)}
    if ends != good or (len(rows) != job.tasks and not resumed):
        odd = [seq for seq in good if ends.get(seq) != good[seq]][:5]
        return [f"joblog.tsv has {len(rows)} rows for {job.tasks} tasks; odd ones: {odd}"]
    return []


class Surroundings:
    """A temporary directory of its own, which also identifies the processes of a run."""

    def __init__(self, folder: Path) -> None:
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.env = {"TMPDIR": str(self.temporary)}
        self._shared = harness.shared_memory()

    def processes(self) -> list[str]:
        """The living processes that have this temporary directory in their environment."""
        mark = f"TMPDIR={self.temporary}\0".encode()
        found = []
        for process in harness.list_processes().values():
            try:
                if process.alive and mark in Path(f"/proc/{process.pid}/environ").read_bytes():
                    found.append(str(process))
            except OSError:  # it has ended
                pass
        return found

    def left(self, run_dir: Path) -> list[str]:
        """Complaints about what remains after the run; waits for processes that are just ending."""
        wrong = []
        try:
            harness.wait_until(lambda: not self.processes(), timeout=15)
        except AssertionError:
            wrong += [f"process left: {process}" for process in self.processes()]
        shared = harness.unused_shared_memory(harness.shared_memory() - self._shared)
        wrong += [f"shared memory left: {name}" for name in sorted(shared)]
        wrong += [f"temporary file left: {name}" for name in os.listdir(self.temporary)]
        wrong += [f"temporary file left: {path}" for path in run_dir.rglob("*.tmp")]
        return wrong


def what_is_wrong(job: Job, run_dir: Path) -> list[str]:
    """All complaints about a run that has ended."""
    return wrong_results(job, run_dir) + wrong_tensors(job, run_dir) + wrong_records(job, run_dir)
