"""The watch with fewer rights: it works as always, or reports that it cannot, and why."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import corpus
import found
import harness
from compiled import CASES, build
from corpus import Case
from harness import Run, Running, wait_until

NOBODY = 65534
IS_ROOT = os.geteuid() == 0
NATIVE = "lock_cycle.c"  # of the cases that are tried
BOTH = [
    case
    for case in corpus.ALL
    if case.program in (NATIVE, "pool_worker_killed.py") and case.compiler != "clang"
]
HIDDEN_PROC = 'mount -t proc -o "hidepid=$0" proc /proc && exec "$@"'
UNPRIVILEGED = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
# A process that other processes of its user may not inspect, such as ssh-agent or a holder of passwords.
UNDUMPABLE = """
import ctypes, threading
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
lock = threading.Lock()
lock.acquire()
lock.acquire()
"""
WAITS_FOR = "import subprocess, sys\nsubprocess.run([sys.executable, sys.argv[1]])\n"

needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root can run as another user")
both_cases = pytest.mark.parametrize("case", BOTH, ids=lambda case: case.name)


@pytest.fixture(scope="session")
def installed() -> Iterator[Path]:
    """A copy of mprun that every user may run."""
    with tempfile.TemporaryDirectory(prefix="mprun-rights-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        prefix = harness.MPRUN_BIN.resolve().parent.parent
        (folder / "bin").mkdir()
        shutil.copy(harness.MPRUN_BIN, folder / "bin/mprun")
        shutil.copytree(prefix / "lib/mprun", folder / "lib/mprun")
        shutil.copytree(CASES, folder / "cases")
        subprocess.run(["chmod", "-R", "a+rX", name], check=True)
        yield folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in which every user may write."""
    with tempfile.TemporaryDirectory(prefix="mprun-rights-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.fixture
def runner(installed: Path, folder: Path) -> Iterator[harness.Runner]:
    runner = harness.Runner(installed / "bin/mprun", folder)
    (folder / "home").chmod(0o777)
    yield runner
    runner.finish()


@pytest.fixture
def mprun(installed: Path) -> list[str]:
    """mprun with options to end what hangs and report it to hang.json."""
    return [str(installed / "bin/mprun"), "--on-hang", "kill", "--hang-report", "hang.json"]


def unprivileged() -> dict[str, Any]:
    """For Popen: runs as an unprivileged user; as the current one if that has no privileges."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if IS_ROOT else {}


def program_of(case: Case, installed: Path, folder: Path) -> list[str]:
    if case.is_python():
        return [harness.MPRUN_PYTHON, str(installed / "cases" / case.program)]
    return case.argv(folder)


def check_found(case: Case, running: Running) -> None:
    """Proved, named and ended, with stacks, as it is everywhere."""
    outcome = found.finish(case, running, running.run_dir.parent / "hang.json")
    wrong = list(found.complaints(outcome))
    assert not wrong, f"{wrong}\n{outcome.run}\n{outcome.report}"
    if case.program == NATIVE:
        native = str([thread["native"] for process in outcome.report["processes"] for thread in process["threads"]])
        assert "lock_both" in native and "pthread_mutex_lock" in native, native


def stalled(running: Running, folder: Path) -> tuple[Run, str]:
    """Waits until it is ended as stalled; returns why nothing could be proved."""
    run = running.wait(120).check(found.GAVE_UP)
    outcome = found.Found(corpus.ALL[0], run, harness.json.loads((folder / "hang.json").read_text("utf-8")))
    assert (outcome.verdict, outcome.cause) == ("stalled", "unknown"), run
    explanation = outcome.report["cause"]["explanation"]
    assert " ".join(explanation.split()) in " ".join(run.stderr.split()), run
    return run, explanation


def skip_unless(*command: str, reason: str, **popen: Any) -> None:
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False, **popen)
    if done.returncode != 0:
        pytest.skip(f"{reason}: {done.stderr.strip()}")


# --- works as always ---------------------------------------------------------------------------


@both_cases
def test_an_unprivileged_user(
    runner: harness.Runner, mprun: list[str], installed: Path, folder: Path, case: Case
) -> None:
    argv = program_of(case, installed, folder)
    check_found(case, runner.start_plain(*mprun, "--", *argv, **unprivileged()))


def test_a_job_of_an_unprivileged_user(runner: harness.Runner) -> None:
    script = """
        import os, threading

        def work(number):
            if number == 1 and os.environ["MPRUN_ATTEMPT"] == "1":
                threading.Event().wait()
            return number
    """
    spec = {"script": "job.py", "function": "work", "inputs": {"range": 3}, "processes": 2}
    text = "\n".join(line[8:] for line in script.splitlines())
    run = runner.start_job(spec, scripts={"job.py": text}, **unprivileged()).wait(120).check()
    assert run.values() == [0, 1, 2]
    (report,) = run.hangs()
    assert "deadlock" in report["verdict"]
    assert "job.py" in str(report["processes"])


@both_cases
@pytest.mark.parametrize("options", ["-Ur", "-Urpf --mount-proc"])
@pytest.mark.parametrize("who", ["root", "nobody"])
def test_in_a_user_namespace(
    runner: harness.Runner,
    mprun: list[str],
    installed: Path,
    folder: Path,
    case: Case,
    options: str,
    who: str,
) -> None:
    if who == "root" and not IS_ROOT:
        pytest.skip("we are not root")
    popen = {} if who == "root" else unprivileged()
    unshare = ["unshare", *options.split()]
    skip_unless(*unshare, "true", reason="no user namespaces here", **popen)
    argv = program_of(case, installed, folder)
    check_found(case, runner.start_plain(*unshare, *mprun, "--", *argv, **popen))


@needs_root
@both_cases
@pytest.mark.parametrize("option", ["noaccess", "invisible", "ptraceable"])
def test_where_proc_hides_others(
    runner: harness.Runner,
    mprun: list[str],
    installed: Path,
    folder: Path,
    case: Case,
    option: str,
) -> None:
    hidden = ["unshare", "-m", "sh", "-c", HIDDEN_PROC, option, *UNPRIVILEGED]
    skip_unless(*hidden, "true", reason="cannot mount /proc")
    argv = program_of(case, installed, folder)
    check_found(case, runner.start_plain(*hidden, *mprun, "--", *argv))


@both_cases
def test_where_a_container_forbids_inspection(
    runner: harness.Runner, mprun: list[str], installed: Path, folder: Path, case: Case
) -> None:
    """ptrace, process_vm_readv, kcmp and pidfd_getfd: /proc has the same information."""
    forbid = build(Path(__file__).with_name("forbid.c"), folder)
    skip_unless(str(forbid), "true", reason="no seccomp here")
    argv = program_of(case, installed, folder)
    check_found(case, runner.start_plain(forbid, *mprun, "--", *argv, **unprivileged()))


@needs_root
@both_cases
def test_root_without_the_right_to_trace(
    runner: harness.Runner, mprun: list[str], installed: Path, folder: Path, case: Case
) -> None:
    """As root in a container."""
    less = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    skip_unless(*less, "true", reason="no such capability here")
    argv = program_of(case, installed, folder)
    check_found(case, runner.start_plain(*less, *mprun, "--", *argv))


@both_cases
def test_with_yama(
    runner: harness.Runner, mprun: list[str], installed: Path, folder: Path, case: Case
) -> None:
    """In mode 1 mprun may inspect its descendants."""
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    if not scope.exists():
        pytest.skip("no Yama in this kernel")
    if scope.read_text(encoding="ascii").strip() != "1":
        pytest.skip("kernel.yama.ptrace_scope is not 1")
    argv = program_of(case, installed, folder)
    check_found(case, runner.start_plain(*mprun, "--", *argv, **unprivileged()))


# --- reports that it cannot --------------------------------------------------------------------


def test_a_process_that_hides_its_memory(
    runner: harness.Runner, mprun: list[str], folder: Path
) -> None:
    """Nor is a hang proved for its waiter. The report names the process."""
    (folder / "hides.py").write_text(UNDUMPABLE, encoding="utf-8")
    (folder / "waits.py").write_text(WAITS_FOR, encoding="utf-8")
    python = harness.MPRUN_PYTHON
    stall = ["--stall-seconds", str(corpus.STALL_SECONDS)]
    argv = [*mprun, *stall, "--", python, folder / "waits.py", folder / "hides.py"]
    run, why = stalled(runner.start_plain(*argv, **unprivileged()), folder)
    assert re.search(r"may not look at process \d+ \(python3[^)]*\): .* hides its memory", why), why
    report = (folder / "hang.json").read_text(encoding="utf-8")
    assert "waits.py" in report, "its waiter is not in the report"
    assert run.stderr.count("mprun: warning: mprun may not look at process") <= 1


def test_a_process_that_hides_its_memory_is_reported_without_a_stall(
    runner: harness.Runner, installed: Path, folder: Path
) -> None:
    """Once, soon, in plain words."""
    (folder / "hides.py").write_text(UNDUMPABLE, encoding="utf-8")
    argv = [installed / "bin/mprun", "--", harness.MPRUN_PYTHON, folder / "hides.py"]
    running = runner.start_plain(*argv, **unprivileged())
    wait_until(lambda: "cannot be proved: run mprun as root" in running.stderr, 60, "the warning")
    running.send_signal(harness.signal.SIGTERM)
    running.wait().check(143)
    assert running.stderr.count("warning") == 1


@needs_root
def test_another_users_process(
    runner: harness.Runner, mprun: list[str], installed: Path, folder: Path
) -> None:
    """With root that lacks the right to trace, as in a container."""
    less = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    skip_unless(*less, *UNPRIVILEGED, "true", reason="no such capability here")
    program = build(NATIVE, folder)
    stall = ["--stall-seconds", str(corpus.STALL_SECONDS)]
    argv = [*less, *mprun, *stall, "--", *UNPRIVILEGED, program]
    _, why = stalled(runner.start_plain(*argv), folder)
    assert "needs the capability CAP_SYS_PTRACE" in why


def test_a_pid_namespace_of_its_own(
    runner: harness.Runner, mprun: list[str], folder: Path
) -> None:
    """Its system calls contain numbers that mean other processes outside."""
    unshare = ["unshare", "-Urpf", "--mount-proc"]
    skip_unless(*unshare, "true", reason="no user namespaces here", **unprivileged())
    program = build(NATIVE, folder)
    stall = ["--stall-seconds", str(corpus.STALL_SECONDS)]
    argv = [*mprun, *stall, "--", *unshare, program]
    _, why = stalled(runner.start_plain(*argv, **unprivileged()), folder)
    assert "in a PID namespace of its own" in why


# Two processes wait for each other's pipe. A third one, which is root's, has both write ends too: it may yet write.
HOLDS_TOO = """
import os, subprocess, sys
reader, writer = os.pipe()
other_reader, other_writer = os.pipe()
stdin, keeps_alive = os.pipe()
subprocess.Popen([sys.argv[1]], stdin=stdin, pass_fds=[writer, other_writer])
os.close(stdin)
if os.fork() == 0:
    os.close(other_writer)
    os.close(keeps_alive)
    os.read(other_reader, 1)
else:
    os.close(writer)
    os.read(reader, 1)
"""


@needs_root
def test_a_process_that_proc_does_not_show(
    runner: harness.Runner, mprun: list[str], folder: Path
) -> None:
    """A set-user-ID program below mprun, with hidepid: no proof without it."""
    for program in ("id", "cat"):
        shutil.copy(f"/usr/bin/{program}", folder / program)
        (folder / program).chmod(0o4755)
    shown = subprocess.run([folder / "id", "-u"], capture_output=True, check=False, **unprivileged())
    if shown.stdout != b"0\n":
        pytest.skip("set-user-ID has no effect here")
    hidden = ["unshare", "-m", "sh", "-c", HIDDEN_PROC, "invisible", *UNPRIVILEGED]
    skip_unless(*hidden, "true", reason="cannot mount /proc")
    (folder / "holds.py").write_text(HOLDS_TOO, encoding="utf-8")
    stall = ["--stall-seconds", str(corpus.STALL_SECONDS)]
    program = [harness.MPRUN_PYTHON, folder / "holds.py", folder / "cat"]
    _, why = stalled(runner.start_plain(*hidden, *mprun, *stall, "--", *program), folder)
    assert re.search(r"process \d+ is hidden", why), why


# --- sees nothing ------------------------------------------------------------------------------


@needs_root
def test_without_proc(runner: harness.Runner, mprun: list[str], folder: Path) -> None:
    """The program runs; one note reports that hangs cannot be found, and what helps."""
    without = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    skip_unless(*without, "true", reason="cannot mount")
    run = runner.start_plain(*without, *mprun, "--", "sh", "-c", "echo out; exit 7").wait().check(7)
    check_blind(run, "/proc is not there", "mount -t proc proc /proc")


def test_with_the_proc_of_another_namespace(runner: harness.Runner, mprun: list[str]) -> None:
    """Its numbers belong to other processes: none of them is watched or signalled."""
    unshare = ["unshare", "-Urpf"]
    skip_unless(*unshare, "true", reason="no user namespaces here", **unprivileged())
    argv = [*unshare, *mprun, "--", "sh", "-c", "echo out; exit 7"]
    run = runner.start_plain(*argv, **unprivileged()).wait().check(7)
    check_blind(run, "/proc shows another PID namespace", "unshare --mount-proc")


def check_blind(run: Run, why: str, cure: str) -> None:
    assert run.stdout == "out\n"
    (note,) = run.stderr.splitlines()
    assert note.startswith(f"mprun: warning: {why}")
    assert "hangs cannot be found" in note and cure in note
