"""What a process inherits: under `mprun --` as without mprun, and what differs in the processes of a job, and why.

A probe in C (inheritance_programs/probe.c) writes down what it has been given, once started plainly and once by mprun,
in surroundings that have been changed in every way that a caller can change them.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import Runner
from terminal import COLUMNS, Terminal

Look = Callable[..., dict[str, str]]

SOURCE = Path(__file__).with_name("inheritance_programs") / "probe.c"
CATCHABLE = [
    number
    for number in signal.valid_signals()
    if number not in (signal.SIGKILL, signal.SIGSTOP)
]

# What may differ for a program under `mprun -- COMMAND`, and why. Everything else is as without mprun.
PROGRAM_DIFFERENCES = {
    r"parent": "the supervisor is between the caller and the program",
    r"timer 0": "an alarm that the caller has set ends mprun, and so the program",
    r"variable LD_PRELOAD": "the preload library, which makes forks safe and reports",
    r"variable PYTHONPATH": "the adapters of Python programs",
    r"variable ASAN_OPTIONS": "AddressSanitizer has to accept the preload library",
    r"variable MPRUN_(NOTES|DEADLINES|SYNC)": "where the adapters find mprun",
}

RANK_VARIABLES = r"variable (RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|GROUP_\w+|ROLE_\w+|MASTER_\w+|TORCHELASTIC_\w+|USE_LIBUV)"

# The same for the processes of a job. They belong to mprun, which ends them, and not to a terminal.
JOB_DIFFERENCES = {
    **PROGRAM_DIFFERENCES,
    r"parent death signal": "killed if the supervisor is: not even kill -9 of mprun leaves a worker",
    r"child subreaper": "orphans of tasks are for mprun to end",
    r"session|process group": "a session each: signals of the terminal are for mprun, which ends its workers itself",
    r"terminal.*|foreground group": "no terminal: many processes cannot share one",
    r"fd .*": "no input, logs as output, mprun's channels, and nothing of the caller's",
    r"status SigBlk": "nothing is blocked, so that a worker can be ended whatever started mprun",
    r"variable MPRUN_.*": "which task of which run it is",
    r"variable \w+_NUM_THREADS|variable VECLIB_MAXIMUM_THREADS": "workers share the CPUs",
    r"variable (CUDA|ASCEND_RT|HIP)_VISIBLE_DEVICES": "a device cannot be used after fork",
    r"variable MALLOC_(MMAP|TRIM)_THRESHOLD_": "memory that tensors need again is kept",
    RANK_VARIABLES: "as torchrun gives ranks; without libuv, which not every torch has",
}
# In jobs these signals have their default action again even if the caller ignores them: what ends or stops a worker
# does so, and SIGPIPE ends a pipeline, whichever program ignores it (Python, a shell for its background jobs). SIGHUP
# is not among them: nohup means all processes. Python catches SIGINT where it is not ignored.
RESET_IN_JOBS = "INT QUIT TERM PIPE XFSZ TSTP TTIN TTOU CHLD USR1 USR2".split()
RESET_BITS = sum(1 << (signal.Signals["SIG" + name] - 1) for name in RESET_IN_JOBS)


# --- surroundings ------------------------------------------------------------------------------


def prctl(option: int, value: int) -> None:
    """Fails where the kernel does not know it."""
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option})")


def ignore(*numbers: int) -> Callable[[], None]:
    return lambda: [signal.signal(number, signal.SIG_IGN) for number in numbers] and None


def block(*numbers: int) -> Callable[[], None]:
    return lambda: signal.pthread_sigmask(signal.SIG_BLOCK, numbers) and None


def close(*fds: int) -> Callable[[], None]:
    return lambda: [os.close(fd) for fd in fds] and None


def limit(which: int, soft: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(which, (soft, resource.getrlimit(which)[1]))


def lower_limits() -> None:
    for which, soft in (
        (resource.RLIMIT_NOFILE, 200),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_STACK, 4 << 20),
        (resource.RLIMIT_MEMLOCK, 1 << 16),
        (resource.RLIMIT_CPU, 1000),
        (resource.RLIMIT_FSIZE, 1 << 30),
        (resource.RLIMIT_NPROC, 5000),
    ):
        limit(which, soft)()


def more_descriptors() -> None:
    os.dup2(1, 5)
    os.dup2(0, 77)
    os.set_blocking(5, False)


def schedule_otherwise() -> None:
    os.nice(3)
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    ioprio_set = {"x86_64": 251, "aarch64": 30}[os.uname().machine]
    ctypes.CDLL(None).syscall(ioprio_set, 1, 0, 2 << 13 | 6)  # best effort, 6


def change_attributes() -> None:
    os.umask(0o027)
    prctl(29, 70_000)  # PR_SET_TIMERSLACK
    prctl(41, 1)  # PR_SET_THP_DISABLE
    prctl(38, 1)  # PR_SET_NO_NEW_PRIVS
    prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
    Path("/proc/self/coredump_filter").write_text("0x1\n")
    Path("/proc/self/oom_score_adj").write_text("17\n")
    ctypes.CDLL(None).personality(0x0040000)  # ADDR_NO_RANDOMIZE


@dataclass(frozen=True)
class Surroundings:
    """How a caller prepares itself before it runs the program or mprun."""

    prepare: Callable[[], Any] = lambda: None
    popen: dict[str, Any] = field(default_factory=dict)


SURROUNDINGS = {
    "usual": Surroundings(),
    "nohup": Surroundings(ignore(signal.SIGHUP)),
    "background": Surroundings(ignore(signal.SIGINT, signal.SIGQUIT)),
    "no ends of children": Surroundings(ignore(signal.SIGCHLD)),
    "python": Surroundings(ignore(signal.SIGPIPE, signal.SIGXFSZ)),
    "terminal signals ignored": Surroundings(ignore(signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)),
    "all ignored": Surroundings(ignore(*CATCHABLE)),
    "one blocked": Surroundings(block(signal.SIGUSR1)),
    "all blocked": Surroundings(block(*CATCHABLE)),
    "stdin closed": Surroundings(close(0)),
    "stdout closed": Surroundings(close(1)),
    "stderr closed": Surroundings(close(2)),
    "all closed": Surroundings(close(0, 1, 2)),
    "alarm": Surroundings(lambda: signal.alarm(600)),
    "more descriptors": Surroundings(more_descriptors, {"close_fds": False}),
    "limits": Surroundings(lower_limits),
    "scheduling": Surroundings(schedule_otherwise),
    "attributes": Surroundings(change_attributes),
    "parent death signal": Surroundings(lambda: prctl(1, signal.SIGTERM)),
    "own group": Surroundings(popen={"process_group": 0}),
    "own session": Surroundings(popen={"start_new_session": True}),
}


# --- what is seen ------------------------------------------------------------------------------


@pytest.fixture(scope="module", name="probe")
def compiled_probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program; the library is beside it."""
    folder = tmp_path_factory.mktemp("probe")
    command = ["cc", "-O1", "-Wall", "-Wextra", "-Werror", SOURCE]
    subprocess.run([*command, "-o", folder / "probe"], check=True)
    flags = ["-shared", "-fPIC", "-DPROBE_LIBRARY"]
    subprocess.run([*command, *flags, "-o", folder / "libprobe.so"], check=True)
    return folder / "probe"


def read(path: Path, started: int) -> dict[str, str]:
    """What a probe saw, in its order, without what differs from start to start: pids and the names of files."""
    seen = {}
    for line in path.read_text(errors="replace").splitlines():
        key, _, value = line.partition("\t")
        if key in ("session", "process group", "foreground group") and value == str(started):
            value = "what was started"
        seen[key] = re.sub(r"(?<=/out)-\d+(?=\.std)", "", value.replace(str(path), "PROBE_FILE"))
    return seen


def differences(plain: dict[str, str], seen: dict[str, str], allowed: dict[str, str]) -> list[str]:
    """One line for each key that exists only once, or has two values, and must not."""
    return [
        f"{key}: {plain.get(key)!r} plain, {seen.get(key)!r} under mprun"
        for key in sorted({*plain, *seen})
        if plain.get(key) != seen.get(key)
        and not any(re.fullmatch(pattern, key) for pattern in allowed)
    ]


def order_of_variables(seen: dict[str, str]) -> list[str]:
    """Of those that a program has with and without mprun."""
    variables = [key for key in seen if key.startswith("variable ")]
    return [key for key in variables if not any(re.fullmatch(name, key) for name in PROGRAM_DIFFERENCES)]


@pytest.fixture(name="look")
def looker(runner: Runner, probe: Path, tmp_path: Path) -> Look:
    """look(words, surroundings) -> what the probe saw that those words started."""
    variables = {"PROBE_LIBRARY": str(probe.with_name("libprobe.so"))}

    def look(words: Sequence[str | Path], where: Surroundings) -> dict[str, str]:
        path = tmp_path / "seen"
        path.unlink(missing_ok=True)
        running = runner.start_plain(
            *words, env={**variables, "PROBE_FILE": str(path)}, preexec_fn=where.prepare, **where.popen
        )
        running.wait(60).check()
        return read(path, running.pid)

    return look


# --- mprun -- COMMAND --------------------------------------------------------------------------


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_a_program_inherits_what_it_would_without_mprun(
    look: Look, probe: Path, mprun: Path, name: str
) -> None:
    program = [probe, "a word", ""]
    plain = look(program, SURROUNDINGS[name])
    seen = look([mprun, "--", *program], SURROUNDINGS[name])
    assert differences(plain, seen, PROGRAM_DIFFERENCES) == []
    assert order_of_variables(seen) == order_of_variables(plain)


def test_a_program_has_the_name_it_was_called_by(look: Look, probe: Path, mprun: Path) -> None:
    """Found in PATH, as by a shell."""
    path = f"{probe.parent}:{os.environ['PATH']}"
    seen = look(["env", f"PATH={path}", mprun, "--", probe.name], Surroundings())
    assert seen["argument 0"] == probe.name


def test_copies_of_a_program_inherit_the_same(look: Look, probe: Path, mprun: Path) -> None:
    """They also have the variables of ranks."""
    where = SURROUNDINGS["all ignored"]
    plain = look([probe], where)
    seen = look([mprun, "-n", "2", "--", probe], where)
    assert differences(plain, seen, {**PROGRAM_DIFFERENCES, RANK_VARIABLES: "they are ranks"}) == []


def test_on_a_terminal(probe: Path, mprun: Path, tmp_path: Path) -> None:
    """Under a shell with job control: in the foreground, in the background, and in a pipeline."""
    script = """
        set -m
        "$@"; mv seen foreground
        "$@" & wait $!; mv seen background
        true | "$@" | true; mv seen pipeline
    """
    found = []
    for words in ([str(probe)], [str(mprun.resolve()), "--", str(probe)]):
        env = {"PATH": os.environ["PATH"], "PROBE_FILE": "seen", "HOME": str(tmp_path)}
        argv = ["/bin/bash", "--norc", "-c", script, "bash", *words]
        terminal = Terminal(argv, tmp_path, env, COLUMNS)
        try:
            assert terminal.wait() == 0, terminal.output
        finally:
            terminal.close()
        places = ("foreground", "background", "pipeline")
        found.append({place: relations(read(tmp_path / place, terminal.pid)) for place in places})
    assert found[0] == found[1]
    assert found[0]["foreground"]["in the foreground"] != found[0]["background"]["in the foreground"]


def relations(seen: dict[str, str]) -> dict[str, object]:
    """What of the terminal does not depend on pids."""
    return {
        "in the foreground": seen["process group"] == seen["foreground group"],
        "session": seen["session"],
        **{key: seen[key] for key in ("terminal", "terminal modes", "status SigIgn", "status SigBlk")},
    }


INTERRUPTED = """
    trap 'echo interrupted' INT
    "$@" sh -c 'echo >>began; until test -e go; do sleep 0.02; done; exit 7' &
    wait $!
    wait $!
    echo "ended with $?"
"""


@pytest.mark.parametrize("under_mprun", [False, True], ids=["plain", "mprun"])
def test_a_background_job_of_a_script_survives_ctrl_c(
    mprun: Path, tmp_path: Path, under_mprun: bool
) -> None:
    """The shell of the script ignores SIGINT for it."""
    words = [str(mprun.resolve()), "--"] if under_mprun else ["env"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    terminal = Terminal(["/bin/sh", "-c", INTERRUPTED, "sh", *words], tmp_path, env, COLUMNS)
    try:
        harness.wait_until(lambda: harness.marks(tmp_path / "began"), what="the program")
        terminal.type("\x03")
        terminal.expect("interrupted")
        (tmp_path / "go").write_text("")
        terminal.expect("ended with 7")
        assert terminal.wait() == 0
    finally:
        terminal.close()


# --- jobs --------------------------------------------------------------------------------------

JOB_SURROUNDINGS = {
    "signals": Surroundings(lambda: (ignore(*CATCHABLE)(), block(*CATCHABLE)())),
    "attributes": Surroundings(lambda: (lower_limits(), schedule_otherwise(), change_attributes())),
}
SCRIPT = """
import ctypes
import os


def look(_):
    assert ctypes.CDLL(os.environ["PROBE_LIBRARY"]).describe_process()
"""


@pytest.fixture(params=["command", "worker-fork", "worker-spawn", "worker-forkserver", "rank-fork", "rank-spawn"])
def job(request: pytest.FixtureRequest, probe: Path, tmp_path: Path) -> tuple[list[str | Path], list[str | Path]]:
    """What runs the probe plainly, and the options and the spec of a job that does so."""
    spec: dict[str, Any] = {"version": 1, "processes": 1}
    python = [harness.MPRUN_PYTHON, tmp_path / "rank.py"]
    kind, _, start_method = request.param.partition("-")
    (tmp_path / "job.py").write_text(SCRIPT)
    (tmp_path / "rank.py").write_text(SCRIPT + "\n\nlook(0)\n")
    if kind == "command":
        spec.update(command=[str(probe)], inputs={"range": 1})
    else:
        spec.update(start_method=start_method, python=harness.MPRUN_PYTHON)
        spec.update({"script": "rank.py"} if kind == "rank" else {"script": "job.py:look", "inputs": {"range": 1}})
    (tmp_path / "job.json").write_text(json.dumps(spec))
    return [probe] if kind == "command" else python, ["--output", tmp_path / "run", tmp_path / "job.json"]


@pytest.mark.parametrize("name", JOB_SURROUNDINGS)
def test_the_processes_of_a_job(
    look: Look, mprun: Path, job: tuple[list[Any], list[Any]], name: str
) -> None:
    program, options = job
    plain = look(program, JOB_SURROUNDINGS[name])
    seen = look([mprun, *options], JOB_SURROUNDINGS[name])
    for signals in (plain, seen):
        for key, bits in (("status SigIgn", RESET_BITS), ("status SigCgt", 1 << (signal.SIGINT - 1))):
            signals["kept of " + key] = f"{int(signals[key], 16) & ~bits:x}"
    reset = int(seen["status SigIgn"], 16) & RESET_BITS
    by_python = 0 if len(program) == 1 else 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)
    assert reset == by_python
    allowed = {**JOB_DIFFERENCES, "status Sig(Ign|Cgt)": "compared above"}
    assert differences(plain, seen, allowed) == []
