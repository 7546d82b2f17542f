"""Which processes mprun signals: only those it started, whatever numbers a host reports or a PID namespace gives."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import RunCommand

TASKS = 20
BYSTANDERS = 60
WRAPPERS = {
    "unshare": "exec unshare -pf {python} \"$@\"",
    "unshare-proc": "exec unshare -pf --mount-proc {python} \"$@\"",
    "bwrap": "exec bwrap --unshare-pid --bind / / --dev-bind /dev /dev --proc /proc {python} \"$@\"",
    # Its first process is no Python.
    "init": "exec unshare -pf --kill-child sh -c '{python} \"$@\"; exit $?' sh \"$@\"",
}

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may make PID namespaces")


# --- PID namespaces ------------------------------------------------------------------------------

DEEDS = """
import os
import signal
import subprocess

import mprun


def run(number):
    if number == 3:
        subprocess.Popen(["sleep", "1000"])  # in the worker's process group
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
    if number == 5:
        os._exit(7)
    if number == 7 and KILLS_HOST and os.environ["MPRUN_ATTEMPT"] == "1":
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    if SEES_MPRUN:
        mprun.counter("tasks").add(1)
    return number
"""

# Starts processes with low numbers, then mprun; reports which of them are alive at its end, and which others.
BESIDE = f"""
import json
import os
import subprocess
import sys

bystanders = [subprocess.Popen(["sleep", "1000"], process_group=0) for _ in range({BYSTANDERS})]
run = subprocess.run(sys.argv[1:], check=False)
alive = [process.pid for process in bystanders if process.poll() is None]
others = [int(name) for name in os.listdir("/proc") if name.isdigit()]
left = sorted(set(others) - {{os.getpid()}} - set(alive))
print(json.dumps({{"code": run.returncode, "alive": len(alive), "left": left}}))
"""


@needs_root
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_an_interpreter_in_a_separate_pid_namespace(
    runner: harness.Runner, tmp_path: Path, start_method: str, wrapper: str
) -> None:
    """Outside, its workers' numbers mean other processes: tasks run, deaths are seen, only workers are signalled."""
    if wrapper == "bwrap" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\n" + WRAPPERS[wrapper].format(python=harness.MPRUN_PYTHON) + "\n", encoding="utf-8")
    python.chmod(0o755)
    # The first process of a namespace cannot be killed from inside it.
    kills_host = start_method != "spawn" and wrapper in ("bwrap", "init")
    script = DEEDS.replace("KILLS_HOST", str(kills_host))
    script = script.replace("SEES_MPRUN", str(wrapper in ("unshare", "init")))  # in /proc
    (tmp_path / "job.py").write_text(script, encoding="utf-8")
    spec = {"version": 1, "script": "job.py:run", "start_method": start_method, "python": str(python), "processes": 4}
    spec |= {"inputs": {"range": TASKS}, "chunk_size": 1, "retries": {"on_death": 1}}
    (tmp_path / "job.json").write_text(json.dumps(spec), encoding="utf-8")
    mprun = [str(harness.MPRUN_BIN), "--output", str(tmp_path / "out"), str(tmp_path / "job.json")]
    outer = ["unshare", "-pf", "--mount-proc", "--kill-child", sys.executable, "-c", BESIDE]
    run = runner.start_plain(*outer, *mprun).wait()
    outcome = json.loads(run.stdout.splitlines()[-1])
    assert outcome == {"code": 1, "alive": BYSTANDERS, "left": []}, str(run)
    results = [json.loads(line) for line in (tmp_path / "out/results.jsonl").read_text("utf-8").splitlines()]
    assert {r["task"]: r.get("value") for r in results} == {n: None if n == 5 else n for n in range(TASKS)}, str(run)
    assert [r["error"]["type"] for r in results if r["task"] == 5] == ["WorkerDied"], str(run)


# Three of its workers start slowly; the fourth, which has a task, kills their host.
SLOW_STARTS = """
import os
import signal

import events


def start_slowly():
    if os.path.exists("killed"):
        return
    try:
        os.close(os.open("first", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        events.mark("slow")
        signal.pause()


if FORKED_WITH_SCRIPT:
    os.register_at_fork(after_in_child=start_slowly)
else:
    start_slowly()


def run(number):
    if not os.path.exists("killed"):
        events.wait_for("slow", 3, seconds=60)
        events.mark("killed")
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    return number
"""


@needs_root
@pytest.mark.parametrize("start_method", ["fork", "forkserver"])
def test_workers_that_die_with_their_namespace_while_they_start(
    run_job: RunCommand, tmp_path: Path, start_method: str
) -> None:
    """No process reports how they ended, and their closed pipes are not their fault: they are started again."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\n" + WRAPPERS["init"].format(python=harness.MPRUN_PYTHON) + "\n", encoding="utf-8")
    python.chmod(0o755)
    spec = {"script": "job.py:run", "start_method": start_method, "python": str(python), "processes": 4}
    spec |= {"inputs": {"range": TASKS}, "chunk_size": 1, "retries": {"on_death": 1}}
    script = SLOW_STARTS.replace("FORKED_WITH_SCRIPT", str(start_method == "fork"))
    run = run_job(spec, scripts={"job.py": script, "events.py": harness.EVENTS}).check()
    assert run.values() == list(range(TASKS))


# --- hosts that lie ------------------------------------------------------------------------------

LIAR = """
import os

from mprun import host

true = host.Host.send_with_pidfd


def lie(self, kind, value, pidfd):
    {lie}


host.Host.send_with_pidfd = lie


def run(number):
    return number
"""
LIES = {
    "a stranger": ("true(self, kind, value, os.pidfd_open(DECOY))", "does not descend from mprun"),
    "init": ("true(self, kind, {**value, 'pid': 1}, os.pidfd_open(1))", "is no process of mprun's PID namespace"),
    "itself": ("true(self, kind, value, os.pidfd_open(os.getpid()))", "another process of the job"),
    "mprun": ("true(self, kind, value, os.pidfd_open(os.getppid()))", "is no process of mprun's PID namespace"),
    "no process": ("true(self, kind, value, os.open('/dev/null', 0))", "is no process of mprun's PID namespace"),
    "nothing": ("self.send(kind, value)", "it sent no pidfd"),
}


@pytest.fixture
def decoy() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"], process_group=0) as process:
        yield process
        process.kill()


@pytest.fixture
def bystanders(decoy: subprocess.Popen[bytes]) -> frozenset[int]:
    return frozenset({decoy.pid})


def job(start_method: str, **more: Any) -> dict[str, Any]:
    return {"script": "job.py:run", "start_method": start_method, "processes": 2, "inputs": {"range": 4}, **more}


@pytest.mark.parametrize("start_method", ["fork", "forkserver"])
@pytest.mark.parametrize("lie", LIES)
def test_a_host_that_names_another_process(
    run_job: RunCommand, decoy: subprocess.Popen[bytes], start_method: str, lie: str
) -> None:
    """The process that it names is not taken for a worker, nor signalled; the job does not begin."""
    code, reason = LIES[lie]
    script = LIAR.format(lie=code.replace("DECOY", str(decoy.pid)))
    run = run_job(job(start_method, preload=["job"]), scripts={"job.py": script}).check(3)
    assert reason in run.stderr, run
    assert decoy.poll() is None, run




def test_the_number_that_a_host_reports_is_not_signalled(
    run_job: RunCommand, decoy: subprocess.Popen[bytes]
) -> None:
    """It reports the decoy's number for each worker; these are killed by their own pidfds when they take too long."""
    script = LIAR.format(lie=f"true(self, kind, {{**value, 'pid': {decoy.pid} + 100000 * value['slot']}}, pidfd)")
    script = script.replace("return number", "import signal; signal.pause()")
    limits = {"task_seconds": 0.3, "grace_seconds": 0.1}
    run = run_job(job("fork", inputs={"range": 1}, retries=0, limits=limits), scripts={"job.py": script}).check(1)
    assert run.results()[0]["error"]["type"] == "Timeout", run
    assert decoy.poll() is None, run


# --- few descriptors -----------------------------------------------------------------------------

GREEDY = """
import os

taken = []


def take_all():
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[0],) * 2)
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        for _ in range({spare}):
            os.close(taken.pop())


def run(number):
    return number
"""


@pytest.mark.parametrize("spare", [1, 3, 4])
def test_a_host_without_room_for_descriptors(run_job: RunCommand, spare: int) -> None:
    """Descriptors that the kernel drops on the way to it (MSG_CTRUNC) are missed: no worker gets another's channels."""
    script = GREEDY.format(spare=spare)
    run = run_job(job("fork", setup="take_all", processes=1), scripts={"job.py": script}).check(3)
    assert "the host cannot fork: Too many open files" in run.stderr, run


# --- kernels without pidfds ----------------------------------------------------------------------

SLOW = """
import signal
import subprocess


def run(number):
    if number == 2:
        subprocess.Popen(["sleep", "1000"])
        signal.pause()  # mprun ends it: limits.task_seconds
    return number
"""


@pytest.fixture(scope="module")
def old_kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("old") / "old_kernel"
    flags = ["-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *flags, "-o", program, Path(__file__).with_name("old_kernel.c")], check=True)
    return program


def test_a_kernel_without_pidfds(
    runner: harness.Runner, tmp_path: Path, old_kernel: Path, start_method: str
) -> None:
    """spawn works, and leftovers of a worker end; fork and forkserver report what they lack before anything runs."""
    (tmp_path / "job.py").write_text(SLOW, encoding="utf-8")
    limits = {"task_seconds": 0.5, "grace_seconds": 0.1}
    spec = {"version": 1, **job(start_method, retries=0, limits=limits)}
    (tmp_path / "job.json").write_text(json.dumps(spec), encoding="utf-8")
    mprun = [harness.MPRUN_BIN, "--python", harness.MPRUN_PYTHON, "--output", tmp_path / "out", tmp_path / "job.json"]
    run = runner.start_plain(old_kernel, *mprun).wait()
    if start_method == "spawn":
        results = [json.loads(line) for line in (tmp_path / "out/results.jsonl").read_text("utf-8").splitlines()]
        assert run.returncode == 1, str(run)
        assert [r.get("value") for r in results] == [0, 1, None, 3], str(run)
        return
    assert run.returncode == 3, str(run)
    assert "fork and forkserver need pidfd_open (Linux 5.3), which fails here" in run.stderr, str(run)
