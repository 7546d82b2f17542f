"""Deadlines that a program sets for its threads, and the limits of a job: reported with what was late, and where."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import EVENTS, MPRUN_PYTHON, Run, RunCommand

HEADERS = harness.ROOT / "adapters/preload/include"
# Only a watch that fails to see what is late lets a test wait so long.
LONGEST = 60

PythonRun = Callable[..., Run]


@pytest.fixture(name="run_python")
def python_runner(run_mprun: RunCommand, tmp_path: Path) -> PythonRun:
    """run_python(source, *options) -> Run: a Python program under `mprun --`."""

    def run(source: str, *options: str | Path) -> Run:
        (tmp_path / "program.py").write_text(source, encoding="utf-8")
        return run_mprun(*options, "--", MPRUN_PYTHON, "program.py", timeout=LONGEST)

    return run


def late(run: Run) -> list[str]:
    """The labels that mprun reported as overdue, in order."""
    lines = [line for line in run.stderr.splitlines() if line.startswith("mprun: overdue: ")]
    return [line.split('"')[1] for line in lines]


# A block that ends only after mprun has reported it.
WAIT_UNTIL_TOLD = '''
import os, time

def wait_until_reported(report="hang.json"):
    end = time.monotonic() + 40
    while not os.path.exists(report) and time.monotonic() < end:
        time.sleep(0.02)
'''


def test_a_late_block_is_reported_with_its_label_and_place(
    run_python: PythonRun, tmp_path: Path
) -> None:
    source = WAIT_UNTIL_TOLD + (
        "import mprun\n\n"
        "def load():\n"
        "    with mprun.deadline(0.2, label='loading shard 7'):\n"
        "        wait_until_reported()\n\n"
        "load()\n"
        "print('done')\n"
    )
    run = run_python(source, "--hang-report", "hang.json").check()
    assert run.stdout == "done\n"
    assert late(run) == ["loading shard 7"]
    report = json.loads((tmp_path / "hang.json").read_text(encoding="utf-8"))
    assert report["verdict"] == "overdue"
    assert report["limit"] == {"label": "loading shard 7", "seconds": 0.2}
    assert Path(report["join"]["file"]).name == "program.py"
    (process,) = report["processes"]
    functions = [frame["function"] for frame in process["threads"][0]["python"]]
    assert functions[-3:] == ["wait_until_reported", "load", "<module>"]


def test_blocks_that_end_in_time_are_not_reported(run_python: PythonRun) -> None:
    run = run_python("""
import time, mprun
for _ in range(1000):
    with mprun.deadline(20, "outer"), mprun.deadline(10, "inner"):
        pass
with mprun.deadline(1e300, "for ever"):
    time.sleep(1)
""").check()
    assert run.stderr == ""


def test_on_hang_kill_ends_the_program(run_python: PythonRun) -> None:
    source = "import time, mprun\nwith mprun.deadline(0.2, 'work'):\n    time.sleep(50)\n"
    assert late(run_python(source, "--on-hang", "kill").check(124)) == ["work"]


def test_a_running_block_is_late_too(run_python: PythonRun) -> None:
    source = "import mprun\nwith mprun.deadline(0.2, 'work'):\n    while True:\n        pass\n"
    run = run_python(source, "--on-hang", "kill").check(124)
    assert late(run) == ["work"]
    assert "still runs" in run.stderr


def test_the_outer_deadline_counts_while_an_inner_one_runs(run_python: PythonRun) -> None:
    source = WAIT_UNTIL_TOLD + (
        "import mprun\n"
        "with mprun.deadline(0.2, 'outer'):\n"
        "    with mprun.deadline(50, 'inner'):\n"
        "        pass\n"
        "    wait_until_reported()\n"
    )
    assert late(run_python(source, "--hang-report", "hang.json").check()) == ["outer"]


def test_deadlines_end_in_any_order(run_python: PythonRun) -> None:
    """As in coroutines, which share a thread: the first to begin is the first to end."""
    run = run_python("""
import asyncio, mprun

async def work(seconds, limit):
    with mprun.deadline(limit, f"{limit} s"):
        await asyncio.sleep(seconds)

async def main():
    await asyncio.gather(work(0.1, 30), work(0.2, 1.5), work(2.5, 20))

asyncio.run(main())
""").check()
    assert run.stderr == ""


def test_every_thread_has_its_own(run_python: PythonRun) -> None:
    source = WAIT_UNTIL_TOLD + """
import threading, mprun

def quick():
    with mprun.deadline(50, "quick"):
        wait_until_reported()

def slow():
    with mprun.deadline(0.2, "slow"):
        wait_until_reported()

threads = [threading.Thread(target=work) for work in (quick, slow, quick)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
    assert late(run_python(source, "--hang-report", "hang.json").check()) == ["slow"]


@pytest.mark.parametrize(
    "end", ["os._exit(0)", "os.kill(os.getpid(), 9)", "os.execvp('sleep', ['sleep', '2'])"]
)
def test_a_process_that_has_ended_is_not_late(run_python: PythonRun, end: str) -> None:
    """The child's line stays on the board, and its time passes."""
    run = run_python(f"""
import os, subprocess, sys, time, mprun
if sys.argv[1:]:
    with mprun.deadline(1, "gone"):
        {end}
subprocess.run([sys.executable, __file__, "child"])
time.sleep(2)
""").check()
    assert late(run) == []


def test_a_forked_child_has_none_of_its_parents(run_python: PythonRun) -> None:
    source = WAIT_UNTIL_TOLD + """
import sys, mprun
with mprun.deadline(1.5, "parent"):
    pid = os.fork()
    if pid == 0:
        time.sleep(2)
if pid == 0:  # it has left its parent's block, and begins its own
    with mprun.deadline(0.2, "child"):
        wait_until_reported()
    os._exit(0)
os.waitpid(pid, 0)
"""
    assert late(run_python(source, "--hang-report", "hang.json").check()) == ["child"]


def test_without_mprun_it_does_nothing(mprun: Path, tmp_path: Path) -> None:
    source = "import mprun, time\nwith mprun.deadline(0.01, 'x') as d: time.sleep(0.1)\nprint('ok')"
    package = mprun.parent.parent / "lib/mprun/python"
    done = subprocess.run(
        [MPRUN_PYTHON, "-c", source],
        env={"PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
        cwd=tmp_path,
    )
    assert (done.stdout, done.stderr) == ("ok\n", "")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("mprun.deadline(0)", "ValueError: deadline: seconds must be more than 0"),
        ("mprun.deadline(float('nan'))", "ValueError: deadline: seconds must be more than 0"),
        ("mprun.deadline('5')", "TypeError: must be real number, not str"),
        ("mprun.deadline(5, b'x')", "TypeError"),
        ("mprun.deadline()", "TypeError"),
        ("d = mprun.deadline(5)\nwith d:\n  with d: pass", "RuntimeError: deadline: it has begun"),
    ],
)
def test_wrong_use_raises(run_python: PythonRun, call: str, error: str) -> None:
    run = run_python(f"import mprun\n{call}\n").check(1)
    assert run.stderr.splitlines()[-1].startswith(error)


# --- C -----------------------------------------------------------------------------------------

C_HEAD = """
#include <mprun/deadline.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
"""


@pytest.fixture(name="run_c")
def c_runner(run_mprun: RunCommand, tmp_path: Path) -> PythonRun:
    """run_c(source, *options) -> Run: a C program under `mprun --`."""

    def run(source: str, *options: str | Path) -> Run:
        (tmp_path / "program.c").write_text(C_HEAD + source, encoding="utf-8")
        flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{HEADERS}"]
        built = ["cc", *flags, "program.c", "-o", "program"]
        subprocess.run(built, cwd=tmp_path, check=True, timeout=LONGEST)
        return run_mprun(*options, "--", "./program", timeout=LONGEST)

    return run


def test_a_c_program_has_deadlines(run_c: PythonRun) -> None:
    source = """
    int main(void) {
      struct mprun_deadline early, outer, inner;
      mprun_begin_deadline(&early, 0.1, "early");
      mprun_end_deadline(&early);
      mprun_end_deadline(&early); /* once more does nothing */
      if (mprun_begin_deadline(&outer, 0.3, "reading") != 0) return 2;
      if (mprun_begin_deadline(&inner, 40, NULL) != 0) return 3;
      if (mprun_begin_deadline(&early, -1, "x") != EINVAL) return 4;
      pause();
    }
    """
    assert late(run_c(source, "--on-hang", "kill").check(124)) == ["reading"]


def test_a_thread_that_ends_leaves_nothing(run_c: PythonRun) -> None:
    """Also where another thread ends the deadline afterwards, and a third has taken the line."""
    run = run_c("""
    static struct mprun_deadline left, kept;
    static void* leave(void* label) {
      mprun_begin_deadline(&left, 1, label);
      return NULL;
    }
    static void* keep(void* label) {
      mprun_begin_deadline(&kept, 30, label);
      mprun_end_deadline(&left);
      sleep(2);
      return NULL;
    }
    int main(void) {
      pthread_t thread;
      pthread_create(&thread, NULL, leave, "left");
      pthread_join(thread, NULL);
      pthread_create(&thread, NULL, keep, "kept");
      pthread_join(thread, NULL);
      mprun_end_deadline(&kept);
    }
    """).check()
    assert run.stderr == ""


def test_lines_are_used_again(run_c: PythonRun) -> None:
    """Each of 4095 concurrent threads has a line; earlier threads keep none."""
    run = run_c("""
    enum { MOST = 4095 };
    static pthread_barrier_t begun;
    static int refused;
    static void* begin(void* wait) {
      struct mprun_deadline deadline;
      if (mprun_begin_deadline(&deadline, 50, "x") == ENOSPC) __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
      if (wait != NULL) pthread_barrier_wait(&begun);
      return NULL;
    }
    static void run(int count) {
      static pthread_t threads[MOST + 1];
      pthread_attr_t small;
      pthread_attr_init(&small);
      pthread_attr_setstacksize(&small, 65536);
      pthread_barrier_init(&begun, NULL, (unsigned)count);
      for (int i = 0; i < count; ++i) {
        if (pthread_create(&threads[i], &small, begin, &begun) != 0) exit(77);
      }
      for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
      printf("%d\\n", refused);
    }
    int main(void) {
      run(1000);
      run(MOST);
      run(MOST + 1);
    }
    """)
    if run.returncode == 77:
        pytest.skip("this machine does not start 4096 threads")
    assert run.check().stdout.split() == ["0", "0", "1"]
    assert run.stderr.count("4095 threads have deadlines") == 1


def test_lines_of_processes_that_were_killed_are_used_again(run_c: PythonRun) -> None:
    run = run_c("""
    #include <sys/wait.h>
    int main(void) {
      for (int i = 0; i < 4200; ++i) {
        const pid_t child = fork();
        if (child == 0) {
          struct mprun_deadline deadline;
          _exit(mprun_begin_deadline(&deadline, 50, "x") == 0 ? 0 : 1);
        }
        int status;
        waitpid(child, &status, 0);
        if (status != 0) return 3;
      }
    }
    """).check()
    assert run.stderr == ""


# --- jobs --------------------------------------------------------------------------------------

JOB = '''
import os
import threading
import time

import mprun


def work(number):
    """Number 1 is late: in its first attempt ("once"), or always."""
    late = os.environ["LATE"]
    if number == 1 and (late == "always" or os.environ["MPRUN_ATTEMPT"] == "1"):
        with mprun.deadline(0.2, "the work"):
            time.sleep(50)  # late
    return [number, int(os.environ["MPRUN_ATTEMPT"])]


def slow(number):
    if number == 1:
        time.sleep(50)  # slow
    return number


def lingering(number):
    if number == 0:
        threading.Thread(target=time.sleep, args=(50,)).start()
    return number


def setup():
    if os.environ.get("LATE") == "setup":
        with mprun.deadline(0.2, "warming up"):
            time.sleep(50)
'''


def spec(function: str, **fields: Any) -> dict[str, Any]:
    return {
        "script": "late.py",
        "function": function,
        "inputs": {"range": 4},
        "processes": 2,
        **fields,
    }


def line_of(comment: str) -> str:
    lines = JOB.splitlines()
    (number,) = [i for i, line in enumerate(lines, 1) if line.endswith(f"# {comment}")]
    return f"late.py:{number}"


def test_a_late_task_is_tried_again(run_job: RunCommand, start_method: str) -> None:
    job = spec("work", start_method=start_method, env={"LATE": "once"})
    run = run_job(job, scripts={"late.py": JOB}).check()
    assert run.values() == [[0, 1], [1, 2], [2, 1], [3, 1]]
    assert late(run) == ["the work"]
    (report,) = run.hangs()
    assert (report["verdict"], report["limit"]["seconds"]) == ("overdue", 0.2)
    assert [hang["verdict"] for hang in run.summary()["hangs"]] == ["overdue"]


def test_a_task_that_is_always_late_fails_with_the_place(run_job: RunCommand) -> None:
    run = run_job(spec("work", env={"LATE": "always"}), scripts={"late.py": JOB}).check(1)
    (failed,) = [result for result in run.results() if result["status"] != "ok"]
    assert failed["error"]["type"] == "Hung"
    assert line_of("late") in failed["error"]["message"]
    assert 'the deadline "the work" has passed' in failed["error"]["message"]


def test_kill_ends_the_job(run_job: RunCommand) -> None:
    job = spec("work", env={"LATE": "always"}, watch={"on_hang": "kill"})
    run_job(job, scripts={"late.py": JOB}).check(124)


def test_a_late_setup_is_a_failed_launch(run_job: RunCommand, start_method: str) -> None:
    job = spec("work", setup="setup", start_method=start_method, env={"LATE": "setup"})
    run = run_job(job, scripts={"late.py": JOB}, timeout=LONGEST).check(3)
    assert '"warming up" has passed' in run.stderr


def test_a_late_host_is_reported_and_its_workers_go_on(run_job: RunCommand) -> None:
    script = """
import threading, time, mprun

def late():
    with mprun.deadline(0.2, "in the background"):
        time.sleep(50)

def setup():
    threading.Thread(target=late, daemon=True).start()

def work(number):
    time.sleep(0.5)
    return number
"""
    run = run_job(spec("work", setup="setup", start_method="fork"), scripts={"late.py": script})
    assert run.check().values() == [0, 1, 2, 3]
    assert late(run) == ["in the background"]


def test_a_task_beyond_its_limit_is_reported_with_the_place(run_job: RunCommand) -> None:
    job = spec("slow", limits={"task_seconds": 0.5}, retries=0)
    run = run_job(job, scripts={"late.py": JOB}).check(1)
    (failed,) = [result for result in run.results() if result["status"] != "ok"]
    assert failed["error"]["type"] == "Timeout"
    assert failed["error"]["message"].endswith(line_of("slow"))
    assert late(run) == ["task 1"]
    (report,) = run.hangs()
    assert report["limit"] == {"label": "task 1", "seconds": 0.5}


def test_a_worker_that_does_not_end_is_reported_and_its_results_are_kept(run_job: RunCommand) -> None:
    job = spec("lingering", limits={"join_seconds": 0.5})
    run = run_job(job, scripts={"late.py": JOB}).check()
    assert run.values() == [0, 1, 2, 3]
    assert len(late(run)) == 1 and late(run)[0].startswith("the end of worker ")
    (report,) = run.hangs()
    assert report["verdict"] == "overdue"
    assert "threading" in report["join"]["call"]


def test_commands_are_reported_too(run_job: RunCommand) -> None:
    job = {
        "command": ["sh", "-c", "sleep 50; true"],
        "inputs": {"range": 1},
        "limits": {"task_seconds": 0.5},
        "retries": 0,
    }
    run = run_job(job).check(1)
    (report,) = run.hangs()
    assert [process["command"] for process in report["processes"]][-1] == "sleep 50"


def test_many_late_tasks_do_not_flood_the_terminal(run_job: RunCommand) -> None:
    job = spec("slow", inputs={"items": [1] * 6}, limits={"task_seconds": 0.3}, retries=0)
    run = run_job(job, scripts={"late.py": JOB, "events.py": EVENTS}).check(1)
    assert len(late(run)) == 1
    assert len(run.hangs()) == 6
