"""System calls of mprun that fail: it copes, or ends with a code and a message, and nothing is lost or left.

Representatives of what failing.py tries in full (README.md).
"""

from __future__ import annotations

import errno
import os
import re
import signal
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

import failing
from harness import RunCommand

# Job, call, errno, once or forever, a function of mprun that must be among the callers, and the exit code: 2 where the
# spec or --output cannot be used, 3 where nothing could be launched, 125 where mprun could not go on, 0 (the program's
# own 7) where it copes.
CASES = [
    ("fork", "pipe2", errno.EMFILE, "once", "make_pipe", 3),
    ("fork", "openat", errno.EMFILE, "forever", "open_logs", 3),
    ("fork", "read", errno.EIO, "forever", "read_document", 2),
    ("fork", "read", errno.EIO, "forever", "read_signals", 0),
    ("fork", "write", errno.ENOSPC, "forever", "ResultsWriter", 125),
    ("fork", "write", errno.EIO, "once", "write_atomically", 2),
    ("fork", "vfork", errno.EAGAIN, "once", "start_host", 3),
    ("fork", "socketpair", errno.EMFILE, "forever", "WorkerConnection::open", 3),
    ("fork", "sendmsg", errno.ETOOMANYREFS, "forever", "send_waiting", 3),
    ("fork", "send", errno.EPIPE, "once", "assign", 0),
    ("fork", "send", errno.EPIPE, "forever", "assign", 3),
    ("fork", "send", errno.EPIPE, "forever", "on_frame", 3),
    ("spawn", "send", errno.EPIPE, "forever", "prepare_launch", 3),
    ("fork", "epoll_ctl", errno.ENOSPC, "once", "WorkerConnection::open", 3),
    ("fork", "epoll_wait", errno.EINVAL, "forever", "run_once", 125),
    ("fork", "mkdir", errno.ENOSPC, "once", "RunDirectory", 2),
    ("fork", "rename", errno.ENOSPC, "forever", "write_atomically", 2),
    ("fork", "memfd_create", errno.ENOMEM, "once", "Engine::create", 0),
    ("fork", "mmap", errno.ENOMEM, "forever", "create", 125),
    ("fork", "getrlimit", errno.EPERM, "forever", "", 0),
    ("fork", "stat", errno.EACCES, "forever", "check_script", 2),
    ("fork", "syscall", errno.ENOSYS, "forever", "", 0),
    ("fork", "syscall", errno.EPERM, "forever", "", 0),
    ("program", "syscall", errno.ENOSYS, "forever", "", 7),
    ("fork", "openat", errno.EACCES, "forever", "", 2),
    ("fork", "getcwd", errno.ENOENT, "forever", "shown_path", 0),
    ("spawn", "vfork", errno.ENOMEM, "forever", "SpawnLauncher", 3),
    ("spawn", "waitid", errno.ECHILD, "forever", "reap_children", 125),
    ("command", "waitid", errno.ECHILD, "once", "reap_children", 125),
    ("command", "vfork", errno.EAGAIN, "once", "", 1),
    ("command", "fork", errno.EAGAIN, "once", "run_guarded", 3),
    ("program", "signalfd", errno.EMFILE, "once", "run_program", 125),
    ("program", "sigwaitinfo", errno.EINVAL, "forever", "run_guarded", 7),
    ("program", "waitid", errno.ECHILD, "forever", "run_program", 125),
    ("program", "read", errno.EIO, "forever", "spawn_process", 126),
    ("program", "epoll_wait", errno.EINVAL, "forever", "run_once", 125),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return failing.build_library(tmp_path_factory.mktemp("library"))


@lru_cache(maxsize=None)
def named_sites(library: Path, scenario: str) -> list[tuple[failing.Site, str]]:
    """The places that a run reaches, each with the functions of mprun that led there."""
    found = failing.sites(library, scenario)
    names = failing.names_of(found)
    return [(site, " < ".join(names[frame] for frame in site.frames)) for site in found]


def places(library: Path, scenario: str, call: str, caller: str) -> Iterator[failing.Site]:
    for site, names in named_sites(library, scenario):
        if site.call == call and caller in names:
            yield site


def parameter(case: tuple[str, str, int, str, str, int]) -> ParameterSet:
    """A case; those of one job run on one worker of pytest-xdist, which finds the job's places once."""
    scenario, call, error, when, caller, _ = case
    name = f"{scenario}-{call}-{errno.errorcode[error]}-{when}-{caller}"
    return pytest.param(case, id=name, marks=pytest.mark.xdist_group(f"failing calls of {scenario}"))


@pytest.mark.parametrize("case", [parameter(case) for case in CASES])
def test_a_call_fails(library: Path, case: tuple[str, str, int, str, str, int]) -> None:
    scenario, call, error, when, caller, code = case
    site = next(places(library, scenario, call, caller), None)
    assert site, f"{call} is not called by {caller!r} any more: name another place"
    # A program may have ended before mprun waits for it: then that call is not made.
    runs = (failing.run(library, scenario, failing.plan_for(site, error, when)) for _ in range(10))
    outcome = next((outcome for outcome in runs if outcome.struck), None)
    assert outcome, f"no run reached {call}"
    assert not outcome.complaints, outcome
    assert outcome.code == code, outcome
    if code in (125, 3, 2):
        assert os.strerror(error) in outcome.stderr or "ended with signal 9" in outcome.stderr, outcome


@pytest.mark.parametrize("scenario", failing.SCENARIOS)
@pytest.mark.parametrize("plan", ["short", "storm"])
def test_short_and_interrupted_calls(library: Path, scenario: str, plan: str) -> None:
    """Half of what was asked for, each time, or half of all calls interrupted, changes nothing."""
    outcome = failing.run(library, scenario, plan)
    assert outcome.code == (7 if scenario == "program" else 0), outcome
    assert not outcome.complaints, outcome


def test_nothing_fails_without_a_fault(library: Path) -> None:
    """The library alone changes nothing, and does not reach what mprun starts."""
    outcome = failing.run(library, "fork", f"vfork:{errno.EAGAIN}:1000000:once")
    assert (outcome.code, outcome.complaints, outcome.struck) == (0, [], False), outcome


@pytest.mark.parametrize("number", [signal.SIGCHLD, signal.SIGPIPE, signal.SIGHUP, signal.SIGINT])
def test_signals_ignored_by_the_caller(run_job: RunCommand, run_mprun: RunCommand, number: int) -> None:
    """Ignored dispositions are inherited: with SIGCHLD ignored, no end of a child would be seen."""

    def ignore() -> None:
        signal.signal(number, signal.SIG_IGN)

    assert run_job(failing.JOBS["fork"], scripts={"job.py": failing.SCRIPT}, preexec_fn=ignore).check().values()
    assert run_mprun("--", "true", preexec_fn=ignore, timeout=30).check()


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
def test_standard_descriptors_closed(run_job: RunCommand, closed: tuple[int, ...]) -> None:
    """Files opened in their place do not receive mprun's messages."""

    def close() -> None:
        for fd in closed:
            os.close(fd)

    run = run_job(failing.JOBS["fork"], scripts={"job.py": failing.SCRIPT}, preexec_fn=close).check()
    assert run.values() == [number * number for number in range(failing.TASKS)]


def test_run_directory_removed(run_job: RunCommand) -> None:
    """It ends, says what is missing, and leaves no process."""
    script = "import os, shutil\n\n\ndef run(number):\n    shutil.rmtree(os.environ['MPRUN_RUN_DIR'], ignore_errors=True)\n"
    spec = {**failing.COMMON, "script": "job.py:run", "limits": failing.LIMITS}
    run = run_job(spec, scripts={"job.py": script}).check(125)
    assert re.search(r"out/\S+: No such file", run.stderr), run
