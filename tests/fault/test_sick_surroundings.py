"""Broken surroundings: mprun copes, or ends with a code and a message, and nothing is lost or left.

Not repeated from other tiers: stdout and stderr closed, hangups, results that are not read, full disks
(integration, contract), a removed run directory (test_failing_calls.py), programs without /proc (hangs).
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import failing
import harness
from harness import MountDisk, Run, RunCommand, StartCommand, wait_until

HERE = Path(__file__).resolve().parent
STRANGER = 54321  # a user that does not exist, so that no other user's processes count for it
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do that")


def squares(run: Run, tasks: int = failing.TASKS) -> None:
    assert run.values() == [number * number for number in range(tasks)], run


def check_lines(run: Run) -> list[dict[str, Any]]:
    """Each line of results.jsonl is whole, of a task of its own, and true."""
    path = run.run_dir / "results.jsonl"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    assert not text or text.endswith("\n"), run
    results = [json.loads(line) for line in text.splitlines()]
    assert len({result["task"] for result in results}) == len(results), run
    assert all(result["value"] == result["task"] ** 2 for result in results if result["status"] == "ok"), run
    return results


def skip_unless(*command: str, reason: str) -> None:
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip(reason)


def job(**more: Any) -> dict[str, Any]:
    return {**failing.COMMON, "script": "job.py:square", **more}


def peak_memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024


# --- pipes and floods ----------------------------------------------------------------------------

LINES = 1_000_000
SHOUTS = f"""
import sys


def square(number):
    if number == 3:
        for block in range({LINES} // 1000):
            sys.stderr.write("".join(f"line {{block * 1000 + i}}\\n" for i in range(1000)))
        sys.stderr.flush()
    return number * number
"""


@pytest.mark.parametrize("kind", ["function", "command"])
def test_a_million_lines_of_stderr(start_job: StartCommand, tmp_path: Path, kind: str) -> None:
    """All of them are kept, none in mprun's memory, and the other tasks go on meanwhile."""
    spec = job(chunk_size=1)
    scripts = {"job.py": SHOUTS, "shout.py": SHOUTS + "\n\nsquare(int(sys.argv[1]))\nprint(int(sys.argv[1]) ** 2)\n"}
    if kind == "command":
        spec = {**failing.JOBS["command"], "command": [harness.MPRUN_PYTHON, "shout.py", "{}"]}
    running = start_job(spec, scripts=scripts)
    peak = 0
    while running.process.poll() is None:
        try:
            peak = max(peak, *(peak_memory(process.pid) for process in running.children() if process.name == "mprun"))
        except (OSError, TypeError):  # just starting, or just ending
            pass
        time.sleep(0.02)
    run = running.wait().check()
    assert peak < 100 << 20
    assert sorted(result["task"] for result in run.results()) == list(range(failing.TASKS))
    logs = [path.read_text(encoding="utf-8").splitlines() for path in (run.run_dir / "logs").glob("*.err")]
    assert max(logs, key=len)[-LINES:] == [f"line {number}" for number in range(LINES)]


WARNS = """
def square(number):
    if number % 2:
        raise ValueError("x" * 2000)
    return number * number
"""


def test_a_standard_error_that_is_not_read(start_job: StartCommand) -> None:
    """Far more output than the pipe holds, and its reader sleeps: no task waits for it, and no result is lost."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writer, b"x" * 4096)
    spec = job(inputs={"range": 300}, retries=0)
    running = start_job(spec, "-v", scripts={"job.py": WARNS}, preexec_fn=lambda: os.dup2(writer, 2))
    os.close(writer)
    try:
        lines = running.run_dir / "results.jsonl"
        wait_until(lambda: lines.exists() and lines.read_text().count("\n") == 300, 30, "all results")
        os.read(reader, 4096)  # mprun may wait for a reader of its last messages
    finally:
        os.close(reader)
    assert len(check_lines(running.wait())) == 300
    assert running.wait().returncode == 1


BUSY = """
import events


def square(text):
    if text.startswith("0 "):
        events.mark("begun")
        events.wait_for("go")
    return len(text)
"""


def test_a_worker_whose_channel_is_full(start_job: StartCommand, tmp_path: Path) -> None:
    """More input than its socket holds is queued for a worker that reads none of it: the other workers go on."""
    inputs = [f"{number} " + "x" * 300_000 for number in range(40)]
    scripts = {"job.py": BUSY, "events.py": harness.EVENTS}
    scripts["inputs.jsonl"] = "".join(json.dumps(text) + "\n" for text in inputs)
    running = start_job(job(chunk_size=8, inputs={"jsonl": "inputs.jsonl"}), scripts=scripts)
    lines = running.run_dir / "results.jsonl"
    wait_until(lambda: harness.marks(tmp_path / "begun"), 30, "the first task")
    wait_until(lambda: lines.exists() and lines.read_text().count("\n") >= 32, 30, "tasks of the other worker")
    (tmp_path / "go").write_text("\n")
    assert running.wait().check().values() == [len(text) for text in inputs]


# --- file systems --------------------------------------------------------------------------------


def test_a_read_only_file_system(run_job: RunCommand, mount_disk: MountDisk) -> None:
    disk = mount_disk("1m")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    run = run_job(failing.JOBS["fork"], "--output", disk / "run", scripts={"job.py": failing.SCRIPT}).check(2)
    assert re.search(r"cannot create .*run.*: Read-only file system", run.stderr), run


LOGS = """
import os


def square(number):
    os.write(2, b"x" * 4096 * 64)
    return number * number
"""


ROW = 1 << 20
ROWS = f"""
import numpy

import events


def row(number):
    if number == 1:
        events.wait_for("go", seconds=60)
    return numpy.full({ROW}, number, "u1")
"""


def test_a_file_system_that_cannot_reserve_space(runner: harness.Runner, tmp_path: Path) -> None:
    """A gathered file gets its size and no blocks: writing to each would take as long as all writes of the job."""
    launcher = tmp_path / "no_fallocate"
    source = HERE / "no_fallocate.c"
    subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", str(launcher), str(source)], check=True)
    skip_unless(str(launcher), "true", reason="no seccomp here")
    for name, text in {"job.py": ROWS, "events.py": harness.EVENTS}.items():
        (tmp_path / name).write_text(text)
    spec = {"version": 1, "script": "job.py:row", "processes": 1, "inputs": {"range": 16}, "chunk_size": 1}
    (tmp_path / "job.json").write_text(json.dumps(spec))
    words = [harness.MPRUN_BIN, "--python", harness.MPRUN_PYTHON, "--output", tmp_path / "out", tmp_path / "job.json"]
    running = runner.start_plain(launcher, *words)
    results, rows = tmp_path / "out" / "results.jsonl", tmp_path / "out" / "tensors" / "result.npy"
    wait_until(lambda: results.exists() and results.read_bytes().count(b"\n") == 1, 30, "the first result")
    made = rows.stat()
    assert made.st_size > 16 * ROW
    assert made.st_blocks * 512 < 4 * ROW
    (tmp_path / "go").write_text("\n")
    assert running.wait().returncode == 0, running.wait()
    assert bytes(rows.read_bytes()[-16 * ROW :: ROW]) == bytes(range(16))


def test_logs_that_fill_the_disk(run_job: RunCommand, mount_disk: MountDisk) -> None:
    """Worker output takes the space that the results need: mprun reports it, and what is there is whole."""
    disk = mount_disk("1m")
    run = run_job({**job(), "inputs": {"range": 2000}}, "--output", disk / "run", scripts={"job.py": LOGS}).check(125)
    assert "No space left on device" in run.stderr, run
    check_lines(run)


# --- processes -----------------------------------------------------------------------------------

WAITS = """
import os

import events


def square(number):
    if number == 3:
        events.mark("pid", os.getpid())
        events.wait_for("go")
    return number * number
"""


def test_a_worker_that_is_stopped_and_continued(start_job: StartCommand, tmp_path: Path) -> None:
    """It may be continued from outside: this is not a hang, and costs only time."""
    spec = job(chunk_size=1, watch={"stall_seconds": 1})
    running = start_job(spec, scripts={"job.py": WAITS, "events.py": harness.EVENTS})
    wait_until(lambda: harness.marks(tmp_path / "pid"), 30, "task 3")
    worker = int(harness.marks(tmp_path / "pid")[0])
    os.kill(worker, signal.SIGSTOP)
    lines = running.run_dir / "results.jsonl"
    wait_until(lambda: lines.exists() and lines.read_text().count("\n") >= failing.TASKS - 1, 30, "the other tasks")
    time.sleep(3)  # time for the watch to be wrong
    (tmp_path / "go").write_text("\n")
    os.kill(worker, signal.SIGCONT)
    run = running.wait().check()
    squares(run)
    assert not [hang for hang in run.hangs() if hang.get("verdict") not in ("stalled", None)], run
    assert " died" not in run.stderr and "ended" not in run.stderr, run


@pytest.fixture
def small_group() -> Iterator[tuple[Path, int]]:
    """A control group with 120 MiB of memory, and that size."""
    size = 120 << 20
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, name = line.split(":", 2)
        root = Path("/sys/fs/cgroup" + ("/memory" if controllers == "memory" else ""))
        group = Path(f"{root}{name}") / f"mprun-fault-{os.getpid()}"
        limit = group / ("memory.limit_in_bytes" if controllers == "memory" else "memory.max")
        if controllers not in ("memory", ""):
            continue
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            limit.write_text(str(size), encoding="ascii")
            yield group, size
            return
        except OSError:
            continue
        finally:
            wait_until(lambda: not (group / "cgroup.procs").read_text().strip(), 20, "an empty control group")
            group.rmdir()
    pytest.skip("no control group for memory can be made here")


GROWS = """
import os


def square(number):
    if number == 3 and not os.path.exists("grown"):
        open("grown", "w").close()
        memory = bytearray(b"x") * (400 << 20)
    return number * number
"""


@pytest.mark.parametrize("retries", [0, 1])
def test_the_kernel_kills_for_memory(
    run_job: RunCommand, start_method: str, small_group: tuple[Path, int], retries: int
) -> None:
    """The control group kills the one that takes too much: its task reports why, or is tried again."""
    group, _ = small_group

    def enter() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

    spec = job(start_method=start_method, retries={"on_death": retries}, chunk_size=1)
    run = run_job(spec, scripts={"job.py": GROWS}, preexec_fn=enter)
    results = {result["task"]: result for result in check_lines(run)}
    assert len(results) == failing.TASKS, run
    assert "its control group ran out of memory" in run.stderr, run
    if retries:
        squares(run.check())
    else:
        run.check(1)
        assert [number for number, result in results.items() if result["status"] != "ok"] == [3]
        assert "its control group ran out of memory" in results[3]["error"]["message"]


@pytest.fixture(scope="module")
def public_copy() -> Iterator[Path]:
    """A copy of mprun that every user may run, in a folder that every user may write."""
    with tempfile.TemporaryDirectory(prefix="mprun-sick-") as name:
        folder = Path(name)
        prefix = harness.MPRUN_BIN.resolve().parent.parent
        (folder / "bin").mkdir()
        shutil.copy(harness.MPRUN_BIN, folder / "bin/mprun")
        shutil.copytree(prefix / "lib/mprun", folder / "lib/mprun")
        (folder / "job.py").write_text(failing.SCRIPT, encoding="utf-8")
        for start_method in harness.START_METHODS:
            spec = {"version": 1, **job(start_method=start_method)}
            (folder / f"{start_method}.json").write_text(json.dumps(spec), encoding="utf-8")
        subprocess.run(["chmod", "-R", "a+rX", name], check=True)
        folder.chmod(0o777)
        yield folder


@needs_root
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_forks_are_refused(runner: harness.Runner, public_copy: Path, start_method: str, processes: int) -> None:
    """RLIMIT_NPROC: no supervisor beside the guard, no host, or no worker beside them; the job cannot be launched."""
    (public_copy / "died").unlink(missing_ok=True)
    user = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
    skip_unless(*user, "true", reason="cannot run as another user")
    out = public_copy / f"{start_method}-{processes}"
    mprun = [public_copy / "bin/mprun", "--python", harness.MPRUN_PYTHON, "--output", out]
    few = ["prlimit", f"--nproc={processes}:{processes}"]
    run = runner.start_plain(*user, *few, *mprun, public_copy / f"{start_method}.json", cwd=public_copy).wait().check(3)
    assert "Resource temporarily unavailable" in run.stderr, run


@pytest.mark.parametrize(
    ("files", "code", "message"),
    [
        (4, 3, r"Too many open files \(raise the limit with `ulimit -n`\)"),
        (8, 2, r"36 open files, the limit is 8\n  raise the limit \(ulimit -Hn\)"),
        (16, 2, r"36 open files, the limit is 16\n  raise the limit \(ulimit -Hn\)"),
        (32, 2, r"36 open files, the limit is 32\n  raise the limit \(ulimit -Hn\)"),
    ],
)
def test_very_few_descriptors(
    runner: harness.Runner, tmp_path: Path, start_method: str, files: int, code: int, message: str
) -> None:
    (tmp_path / "job.py").write_text(failing.SCRIPT, encoding="utf-8")
    (tmp_path / "job.json").write_text(json.dumps({"version": 1, **job(start_method=start_method)}), encoding="utf-8")
    few = ["prlimit", f"--nofile={files}:{files}"]
    mprun = [harness.MPRUN_BIN, "--python", harness.MPRUN_PYTHON, "--output", tmp_path / "out"]
    run = runner.start_plain(*few, *mprun, tmp_path / "job.json").wait().check(code)
    assert re.search(message, run.stderr), run


# --- what mprun reads about the system -----------------------------------------------------------


@needs_root
def test_a_job_without_proc(runner: harness.Runner, tmp_path: Path, start_method: str) -> None:
    """It runs without the information from there, and reports that."""
    without = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    skip_unless(*without, "true", reason="cannot mount")
    (tmp_path / "job.py").write_text(failing.SCRIPT, encoding="utf-8")
    (tmp_path / "job.json").write_text(json.dumps({"version": 1, **job(start_method=start_method)}), encoding="utf-8")
    mprun = [harness.MPRUN_BIN, "--python", harness.MPRUN_PYTHON, "--output", tmp_path / "out"]
    run = runner.start_plain(*without, *mprun, tmp_path / "job.json").wait().check()
    assert "/proc" in run.stderr, run
    squares(run)


def sick(name: str, folder: Path) -> Path:
    """Compiles a library of this folder to be preloaded into mprun."""
    library = folder / f"lib{name}.so"
    flags = ["-shared", "-fPIC", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *flags, "-o", str(library), str(HERE / f"{name}.c")], check=True)
    return library


@pytest.fixture(scope="module")
def sick_clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sick("sick_clock", tmp_path_factory.mktemp("library"))


def with_clock(library: Path, runs: float, stands: float) -> dict[str, str]:
    program = str(harness.MPRUN_BIN.resolve())
    return {"LD_PRELOAD": str(library), "CLOCK_PROGRAM": program, "CLOCK_RUNS": str(runs), "CLOCK_STANDS": str(stands)}


def test_a_clock_that_never_goes(run_job: RunCommand, sick_clock: Path, start_method: str) -> None:
    """What does not depend on time does not wait for it."""
    spec = failing.JOBS[start_method]
    squares(run_job(spec, scripts={"job.py": failing.SCRIPT}, env=with_clock(sick_clock, 0, 1e6)).check())


SLEEPS = "import time\n\n\ndef square(number):\n    time.sleep(600 if number == 3 else 0)\n    return number * number\n"


def test_a_clock_that_stands_for_a_while(run_job: RunCommand, sick_clock: Path) -> None:
    """Limits are late by as much, and then enforced."""
    spec = job(chunk_size=1, limits={"task_seconds": 1, "grace_seconds": 1}, retries=0)
    begun = time.monotonic()
    run = run_job(spec, scripts={"job.py": SLEEPS}, env=with_clock(sick_clock, 0.5, 3)).check(1)
    assert time.monotonic() - begun > 3
    assert [result["task"] for result in check_lines(run) if result["status"] != "ok"] == [3]


# --- memory --------------------------------------------------------------------------------------

BEFORE_MAIN = 300  # allocations, generously, that libraries make to initialize


@pytest.fixture(scope="module")
def failing_memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sick("failing_memory", tmp_path_factory.mktemp("library"))


def with_memory(library: Path, folder: Path, plan: str = "") -> dict[str, str]:
    program = str(harness.MPRUN_BIN.resolve())
    count = str(folder / "allocations")
    return {"LD_PRELOAD": str(library), "MEMORY_PROGRAM": program, "MEMORY_COUNT": count, "MEMORY_PLAN": plan}


@pytest.mark.parametrize("when", ["once", "forever"])
def test_memory_that_is_refused(run_job: RunCommand, failing_memory: Path, tmp_path: Path, when: str) -> None:
    """At any place: a line reports it, and what is recorded is whole. The guard has the count of the supervisor when it
    forks it, so that a late place may be one of both.

    The number of allocations varies a little between runs, so a late place may not be reached; then nothing is missing.
    """
    scripts = {"job.py": failing.SCRIPT}
    run_job(failing.JOBS["fork"], scripts=scripts, env=with_memory(failing_memory, tmp_path)).check()
    most = max(int(line) for line in harness.marks(tmp_path / "allocations"))
    codes = set()
    for number in range(BEFORE_MAIN, most, (most - BEFORE_MAIN) // 8):
        (tmp_path / "died").unlink(missing_ok=True)
        env = with_memory(failing_memory, tmp_path, f"{number}:{when}")
        run = run_job(failing.JOBS["fork"], scripts=scripts, env=env)
        codes.add(run.returncode)
        if run.returncode == 0:
            squares(run)
        else:
            run.check(125)
            assert run.stderr.count("memory has run out") in (1, 2), f"{number} {run}"
        assert not failing.RAW.search(run.stderr), f"{number} {run}"
        check_lines(run)
    assert 125 in codes


def test_a_run_without_memory_is_resumed(
    run_job: RunCommand, run_mprun: RunCommand, failing_memory: Path, tmp_path: Path
) -> None:
    env = with_memory(failing_memory, tmp_path)
    run_job(failing.JOBS["fork"], scripts={"job.py": failing.SCRIPT}, env=env).check()
    most = max(int(line) for line in harness.marks(tmp_path / "allocations"))
    for number in range(most - 60, most - 2000, -200):
        env = with_memory(failing_memory, tmp_path, f"{number}:forever")
        run = run_job(failing.JOBS["fork"], scripts={"job.py": failing.SCRIPT}, env=env)
        if run.returncode == 125 and (run.run_dir / "journal.jsonl").exists():
            break
    else:
        pytest.fail("memory never ran out while tasks ran")
    run_mprun("resume", run.run_dir).check()
    squares(run)
