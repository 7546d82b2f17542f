"""The preload library, in small C programs under `mprun --`: hooks, quiet, notes, OpenMP."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import harness
from harness import Run, RunCommand

PROGRAMS = harness.ROOT / "tests/integration/preload_programs"
HANGS = 128 + 14  # ended by its own alarm

Compile = Callable[..., Path]


def run_tool(*command: str | Path) -> str:
    """The output of a tool; fails with it."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module", name="build")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """build(NAME, *FLAGS, compiler="cc", output=NAME) compiles NAME.c once and returns the program."""
    folder = tmp_path_factory.mktemp("programs")

    def compile_one(
        name: str, *flags: str | Path, compiler: str = "cc", output: str | None = None
    ) -> Path:
        program = folder / (output or name)
        if not program.exists():
            warnings = ["-Wall", "-Wextra", "-Werror"]
            header = harness.ROOT / "adapters/preload/include"
            source = PROGRAMS / f"{name}.c"
            run_tool(
                compiler, *warnings, "-g", "-O1", "-pthread", f"-I{header}", source, "-o", program, *flags
            )
        return program

    return compile_one


def warnings_of(run: Run) -> list[str]:
    """The warnings of mprun; fails if there was any other output."""
    lines = run.stderr.splitlines()
    assert all(line.startswith("mprun: warning: ") for line in lines), run
    return [line.removeprefix("mprun: warning: ") for line in lines]


# --- hooks -------------------------------------------------------------------------------------


@pytest.fixture(name="hooks")
def hook_program(run_mprun: RunCommand, build: Compile) -> Callable[..., list[str]]:
    """hooks("add a fork") runs those steps and returns what was printed; nothing may be warned of."""

    def run(steps: str, adapters: str = "", warned: tuple[str, ...] = ()) -> list[str]:
        env = {"MPRUN_ADAPTERS": adapters} if adapters else {}
        done = run_mprun("--", build("hooks"), *steps.split(), env=env).check()
        warnings = warnings_of(done)
        assert len(warnings) == len(warned), done
        for expected, warning in zip(warned, warnings):
            assert re.search(expected, warning), done
        return done.stdout.splitlines()

    return run


def test_order(hooks: Callable[..., list[str]]) -> None:
    """Prepare last registered first; parent and child first registered first."""
    before = " prepare-c prepare-b prepare-a"
    assert hooks("add a add b add c fork fork") == [
        f"child:{before} child-a child-b child-c",
        f"parent:{before} parent-a parent-b parent-c",
    ] * 2


def test_parent_halves_run_when_fork_fails(hooks: Callable[..., list[str]]) -> None:
    """And errno is fork's, whatever the hooks left there."""
    assert hooks("add a add b no-clone fork") == [
        "ENOMEM parent: prepare-b prepare-a parent-a parent-b"
    ]


def test_a_failing_hook_is_named(hooks: Callable[..., list[str]]) -> None:
    """It gets no other half; the fork and the other hooks go on."""
    warning = r'^the fork hook "bad" failed: .*busy; the fork goes on \[bad, pid \d+\]$'
    assert hooks("add a add bad,fails add b fork", warned=(warning,)) == [
        "child: prepare-b prepare-bad prepare-a child-a child-b",
        "parent: prepare-b prepare-bad prepare-a parent-a parent-b",
    ]


def test_a_late_hook_is_named(hooks: Callable[..., list[str]]) -> None:
    warning = r'^the fork hook "slow" was late: it took \d+\.\d s of 0\.0 s; the fork goes on'
    assert hooks("add a add slow,late fork", warned=(warning,)) == [
        "child: prepare-slow prepare-a child-a child-slow",
        "parent: prepare-slow prepare-a parent-a parent-slow",
    ]


def test_a_failing_hook_refuses_the_fork(hooks: Callable[..., list[str]]) -> None:
    """What was prepared before is undone, what would come later is not called."""
    warning = r'"bad" failed: .*; the fork is refused'
    assert hooks("add a add bad,fails,refuses add b fork", warned=(warning,)) == [
        "EAGAIN parent: prepare-b prepare-bad parent-b"
    ]


def test_a_late_hook_refuses_the_fork(hooks: Callable[..., list[str]]) -> None:
    """It did succeed, so that it is undone itself."""
    assert hooks("add a add slow,late,refuses add b fork", warned=("fork is refused",)) == [
        "EAGAIN parent: prepare-b prepare-slow parent-slow parent-b"
    ]


def test_a_fork_from_inside_libc(hooks: Callable[..., list[str]]) -> None:
    """forkpty() does not call our fork(), and cannot be refused."""
    assert hooks("add a add b forkpty fork") == [
        "child: prepare-b prepare-a child-a child-b",
        "parent: prepare-b prepare-a parent-a parent-b",
    ] * 2
    assert hooks("add a add bad,fails,refuses forkpty", warned=("cannot be refused",)) == [
        "child: prepare-bad prepare-a child-a",
        "parent: prepare-bad prepare-a parent-a",
    ]


def test_a_removed_hook(hooks: Callable[..., list[str]]) -> None:
    assert hooks("add a add b remove a fork remove c remove a") == [
        "remove: done",
        "child: prepare-b child-b",
        "parent: prepare-b parent-b",
        "remove: ENOENT",
        "remove: ENOENT",
    ]


def test_a_fork_inside_a_hook(hooks: Callable[..., list[str]]) -> None:
    """Runs no hooks."""
    assert hooks("add a add b,forks fork") == [
        "child: prepare-b prepare-a child-a child-b",
        "parent: prepare-b prepare-a parent-a parent-b",
    ]


def test_a_hook_switched_off_by_the_user(hooks: Callable[..., list[str]]) -> None:
    assert hooks("add a add b fork", adapters="-b,-c") == [
        "child: prepare-a child-a",
        "parent: prepare-a parent-a",
    ]


def test_a_hook_for_threads_only(hooks: Callable[..., list[str]]) -> None:
    assert hooks("add a,threads add b fork thread fork") == [
        "child: prepare-b child-b",
        "parent: prepare-b parent-b",
        "child: prepare-b prepare-a child-a child-b",
        "parent: prepare-b prepare-a parent-a parent-b",
    ]


def test_hooks_in_a_grandchild(hooks: Callable[..., list[str]]) -> None:
    assert hooks("add a grandchild") == [
        "grandchild: prepare-a child-a",
        "child: prepare-a parent-a",
        "parent: prepare-a parent-a",
    ]


def test_no_hooks_where_a_program_is_started(hooks: Callable[..., list[str]]) -> None:
    assert hooks("add a vfork spawn") == ["parent:", "parent:"]


def test_the_registry(run_mprun: RunCommand, build: Compile) -> None:
    """EINVAL, ENOENT, ENOSPC; room comes back. Our own adapters take some of the 64."""
    run = run_mprun("--", build("registry")).check()
    said = re.fullmatch(r"ENOSPC after (\d+) hooks, (\d+) called\n", run.stdout)
    assert said, run
    added, called = map(int, said.groups())
    assert 55 <= added < 64
    assert called == added + 1, "one is called `kept`"
    assert warnings_of(run) == []


@pytest.mark.parametrize("program", ["two_forks", "removed_in_flight", "register_beside_forks"])
def test_hooks_and_threads(run_mprun: RunCommand, build: Compile, program: str) -> None:
    env = {"MPRUN_ADAPTERS": "-quiet"}
    run = run_mprun("--", build(program), env=env, timeout=120).check()
    assert warnings_of(run) == []


# --- quiet -------------------------------------------------------------------------------------


def forks_beside(run: Run) -> tuple[str, list[tuple[float, str]]]:
    """The thread's number, and of each fork the seconds and the thread's state."""
    thread, *forks = run.check().stdout.splitlines()
    parts = [fork.split(maxsplit=1) for fork in forks]
    return thread, [(float(seconds), state) for seconds, state in parts]


def test_a_thread_that_does_not_rest_is_named_once(run_mprun: RunCommand, build: Compile) -> None:
    env = {"MPRUN_QUIET_SECONDS": "1.5"}
    run = run_mprun("--", build("busy_threads"), "spin", env=env)
    thread, [(first, _), (second, _)] = forks_beside(run)
    assert first >= 1.5
    assert second < 1.5
    [warning] = warnings_of(run)
    assert f"thread {thread} (spinner) was still running after 1.5 s" in warning


def test_threads_that_wake_again_and_again(run_mprun: RunCommand, build: Compile) -> None:
    """They too are named, and waited for once."""
    env = {"MPRUN_QUIET_SECONDS": "1.5"}
    run = run_mprun("--", build("busy_threads"), "switch", env=env)
    _, [(first, _), (second, _)] = forks_beside(run)
    assert first >= 1.5
    assert second < 1.5
    assert re.search(r"thread \d+ \(waker\) and \d+ more was still running", run.stderr), run


def test_a_thread_that_rests_soon_is_waited_for(run_mprun: RunCommand, build: Compile) -> None:
    env = {"MPRUN_QUIET_SECONDS": "60"}
    run = run_mprun("--", build("busy_threads"), "settle", env=env)
    _, [(_, state)] = forks_beside(run)
    assert state == "at rest"
    assert warnings_of(run) == []


def test_threads_that_have_not_run_since_the_last_fork(run_mprun: RunCommand, build: Compile) -> None:
    """They are still blocked; one that has run is waited for."""
    env = {"MPRUN_QUIET_SECONDS": "60"}
    run = run_mprun("--", build("repeated_forks", "-rdynamic"), env=env).check()
    first, second, third = (line.split(maxsplit=1) for line in run.stdout.splitlines())
    assert int(first[0]) >= 3
    assert second == ["0", "idle"]
    assert int(third[0]) >= 3
    assert third[1] == "idle"


# --- programs that mprun's library is not in ---------------------------------------------------


@pytest.mark.parametrize("how", ["execve", "list", "clearenv", "vfork", "spawn"])
def test_a_cleared_environment_is_noted_once(
    run_mprun: RunCommand, build: Compile, how: str
) -> None:
    programs = [build("forks_beside_threads", output=name) for name in ("first", "second")]
    run = run_mprun("--", build("clear_environment"), how, *programs).check()
    warnings = warnings_of(run)
    # Each child of fork() is a separate process, and reports itself.
    for program, warning in zip(programs, warnings):
        assert warning.startswith(f"{program} is started without LD_PRELOAD in its environment")
    assert len(warnings) == (1 if how in ("vfork", "spawn") else 2), run


def test_a_kept_environment_is_not_noted(run_mprun: RunCommand, build: Compile) -> None:
    program = build("forks_beside_threads")
    assert run_mprun("--", build("clear_environment"), "keep", program, program).check().stderr == ""


@pytest.mark.parametrize("flags", [["-DONLY_FORKS"], ["-DONLY_THREADS"], ["-static"]], ids=" ".join)
def test_what_needs_no_adapter_is_not_noted(
    run_mprun: RunCommand, build: Compile, flags: list[str]
) -> None:
    """It does not fork, or has no threads; or nothing can be preloaded into it."""
    program = build("forks_beside_threads", *flags, output="forks" + "".join(flags))
    assert run_mprun("--", build("clear_environment"), "execve", program, program).check().stderr == ""


def test_tools_of_a_library_are_not_noted(run_mprun: RunCommand, tmp_path: Path) -> None:
    """As when Python looks for a library: ldconfig, gcc and ld, in environments of their own."""
    program = tmp_path / "find.py"
    program.write_text(
        "import ctypes.util, subprocess\n"
        "assert ctypes.util.find_library('c')\n"
        "assert ctypes.util.find_library('nonsense') is None\n"
        "subprocess.run(['diff', '/dev/null', '/dev/null'], env={}, check=True)\n"
    )
    assert run_mprun("--", harness.MPRUN_PYTHON, program).check().stderr == ""


@pytest.mark.parametrize("first", [harness.MPRUN_PYTHON, f"/usr/bin/env {harness.MPRUN_PYTHON}"])
def test_a_script_is_noted_by_its_interpreter(
    run_mprun: RunCommand, build: Compile, tmp_path: Path, first: str
) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!{first}\n")
    script.chmod(0o755)
    run = run_mprun("--", build("clear_environment"), "spawn", script, script).check()
    assert [warning.split()[0] for warning in warnings_of(run)] == [str(script)]


def test_programs_started_with_argument_lists(run_mprun: RunCommand, build: Compile) -> None:
    """By execl, execlp and execle, which mprun's library wraps."""
    run = run_mprun("--", build("argument_lists"), harness.MPRUN_PYTHON).check()
    assert run.stdout == "execl a b  c\nexeclp\nexecle 2 3 \n"
    assert f"{harness.MPRUN_PYTHON} is started without LD_PRELOAD" in run.stderr
    assert run_mprun("-q", "--", build("argument_lists"), harness.MPRUN_PYTHON).check().stderr == ""


def test_a_setuid_program(run_mprun: RunCommand, build: Compile) -> None:
    """The loader keeps our library out of it, and its forks work."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a program to another user")
    program = build("secure")
    os.chown(program, 65534, -1)
    program.chmod(0o755 | stat.S_ISUID)
    run = run_mprun("--", program)
    if run.stdout == "not secure\n":
        pytest.skip("this file system, or no_new_privs, ignores setuid")
    assert run.check().stdout == "absent\n"


@pytest.mark.parametrize("flags", [[], ["-static"]], ids=["dynamic", "static"])
def test_a_program_that_never_forks(run_mprun: RunCommand, build: Compile, flags: list[str]) -> None:
    program = build("plain", *flags, output="plain" + "".join(flags))
    run = run_mprun("--", program, "an argument")
    assert run.returncode == 43
    assert (run.stdout, run.stderr) == ("1 arguments, first an argument\n", "a complaint\n")


def test_the_library_shows_only_its_own(mprun: Path) -> None:
    library = mprun.parent.parent / "lib/mprun/libmprun_preload.so"
    symbols = run_tool("nm", "-D", "--defined-only", "--format=posix", library).splitlines()
    names = {line.split()[0] for line in symbols}
    clocks = {"alarm", "ualarm", "setitimer"}
    witnessed = {"kill", "wait", "wait3", "wait4", "waitid", "waitpid"}
    handlers = {"sigaction", "signal", "__sysv_signal"}
    hooks = {"mprun_register_fork_hook", "mprun_unregister_fork_hook"}
    assert {"fork", "execve", *clocks, *witnessed, *handlers, *hooks} <= names
    ours = re.compile(r"fork|exec\w*|posix_spawnp?|mprun_\w+|__asan_default_options")
    strange = {name for name in names - clocks - witnessed - handlers if not ours.fullmatch(name)}
    assert strange == set()
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run_tool("readelf", "-d", library))
    assert {name.split("-")[0] for name in needed} <= {"libc.so.6", "ld"}  # the loader is always there


# --- history -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class History:
    """What a run of the program `history` reported, and what it did."""

    notes: list[tuple[int, str]]  # the sender, according to the kernel; the text
    children: list[tuple[int, int, int]]  # of each child its number, its parent and the thread
    pid: int  # of the program
    asked: list[int]  # whether the library remembered an alarm
    alarm: str  # the environment's entry for one

    def forks(self) -> list[tuple[int, str]]:
        """Those that report a fork."""
        return [(pid, text) for pid, text in self.notes if text.startswith("fork")]


RunHistory = Callable[..., History]


@pytest.fixture(name="history")
def history_program(mprun: Path, build: Compile) -> Iterator[RunHistory]:
    """history("fork alarm=9") runs these steps with the library alone; the test receives the notes."""
    library = mprun.parent.parent / "lib/mprun/libmprun_preload.so"
    address = f"mprun-test-{os.getpid()}-history"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as box:
        box.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        box.bind(f"\0{address}")

        def take(program: subprocess.Popen[str]) -> Iterator[tuple[int, str]]:
            """Until the program has ended and everything is read."""
            deadline = time.monotonic() + 120
            box.settimeout(0.05)
            while time.monotonic() < deadline:
                ended = program.poll() is not None
                try:
                    data, control, _, _ = box.recvmsg(4096, socket.CMSG_SPACE(12))
                except TimeoutError:
                    if ended:
                        return
                    continue
                pid, _, _ = struct.unpack("3i", control[0][2][:12])
                adapter, _, text = data.decode().partition("\n")
                assert adapter == "history"
                yield pid, text
            program.kill()

        def run(steps: str, name: str = address) -> History:
            env = {**os.environ, "LD_PRELOAD": str(library), "MPRUN_NOTES": name}
            command = [build("history"), *steps.split()]
            with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as program:
                notes = list(take(program))
                assert program.stdout is not None
                lines = [line.split() for line in program.stdout]
            assert program.returncode == 0
            words = [line for line in lines if line[0] in ("asked", "alarm")]
            children = [(int(child), int(parent), int(thread)) for child, parent, thread in
                        (line for line in lines if line not in words)]
            asked = [int(line[1]) for line in words if line[0] == "asked"]
            alarm = "".join("".join(line[1:]) for line in words if line[0] == "alarm")
            return History(notes, children, program.pid, asked, alarm)

        yield run


def test_a_child_reports_its_fork(history: RunHistory) -> None:
    """Its parent, the forking thread, and the number of threads."""
    reported = history("fork thread thread fork fork-in-thread")
    expected = [
        (child, f"fork\t{parent}\t{thread}\t{threads}")
        for (child, parent, thread), threads in zip(reported.children, (1, 3, 4))
    ]
    assert reported.notes == expected
    assert [thread == parent for _, parent, thread in reported.children] == [True, True, False]


def test_no_history_of_programs_that_are_started(history: RunHistory) -> None:
    """They run a program of their own: nothing of the parent's is in them."""
    reported = history("vfork spawn")
    assert len(reported.children) == 2
    assert reported.notes == []


@pytest.mark.parametrize("clock", ["alarm", "ualarm", "real"])
def test_an_alarm_is_remembered(history: RunHistory, clock: str) -> None:
    reported = history(f"asked {clock}=50 asked {clock}=0 asked")
    assert reported.asked == [0, 1, 1]
    assert reported.notes == []


@pytest.mark.parametrize("clock", ["alarm=0", "ualarm=0", "real=0", "virtual=50", "prof=50"])
def test_an_alarm_that_never_rings_is_not_remembered(history: RunHistory, clock: str) -> None:
    """No clock is set; or one that does not run while the process waits."""
    assert history(f"{clock} asked").asked == [0]


def test_a_childs_alarm_is_its_own(history: RunHistory) -> None:
    """A child inherits none and sets its own; one that shares its parent's memory hides none."""
    assert history("alarm=50 in-child=asked asked").asked == [0, 1]
    assert history("in-child=alarm=50 asked").asked == [0]
    assert history("in-vfork=alarm alarm=50 asked").asked == [1]


def test_an_alarm_outlives_exec(history: RunHistory) -> None:
    """A program that has the library knows of it; any other finds it in its environment."""
    assert history("alarm=50 exec asked").asked == [1]
    assert history("exec asked").asked == [0]
    assert history("alarm=50 alarm=0 exec asked").asked == [0]
    reported = history("alarm=50 env")
    assert reported.alarm == str(reported.pid)
    assert history("env").alarm == ""
    assert history("alarm=50 exec exec env").alarm != ""


def test_an_alarm_does_not_wait_for_a_reader(mprun: Path, build: Compile) -> None:
    """Also where the socket of notes is full, which any user can cause."""
    library = mprun.parent.parent / "lib/mprun/libmprun_preload.so"
    address = f"\0mprun-test-{os.getpid()}-full"
    kinds = (socket.AF_UNIX, socket.SOCK_DGRAM)
    with socket.socket(*kinds) as box, socket.socket(*kinds) as sender:
        box.bind(address)
        sender.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                sender.sendto(b"history\nfull", address)
        env = {**os.environ, "LD_PRELOAD": str(library), "MPRUN_NOTES": address[1:]}
        command = [build("history"), "many=1000", "fork", "asked"]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    assert done.stdout.endswith("asked 1\n")


@pytest.mark.parametrize("name", ["", "mprun-test-nobody"])
def test_history_that_is_not_read(history: RunHistory, name: str) -> None:
    """Costs nothing and breaks nothing."""
    assert history("fork alarm=50 thread fork", name=name).notes == []


def test_history_is_not_printed(run_mprun: RunCommand, build: Compile) -> None:
    run = run_mprun("--", build("history"), "fork", "alarm=50", "fork").check()
    assert run.stderr == ""


def test_history_of_a_job_is_not_printed(run_job: RunCommand, start_method: str) -> None:
    script = "import os\ndef run(_):\n    os.wait() if os.fork() else os._exit(0)\n"
    spec = {"script": "job.py:run", "inputs": {"range": 4}, "start_method": start_method}
    run = run_job(spec, "-q", scripts={"job.py": script}).check()
    assert run.stderr == ""


def test_many_forks_and_alarms(run_mprun: RunCommand, build: Compile) -> None:
    """Faster than the reader: what is lost is lost, and no process waits for long."""
    steps = ["many=100000", *["fork"] * 2000]
    run = run_mprun("--", build("history"), *steps, timeout=120).check()
    assert len(run.stdout.splitlines()) == 2000
    assert run.stderr == ""


# --- Python ------------------------------------------------------------------------------------

BESIDE_GIL = """
import ctypes, signal, sys, threading
signal.alarm(PATIENCE)
unlocked, locked = ctypes.CDLL(sys.argv[1]), ctypes.PyDLL(sys.argv[1])
if sys.argv[2] == "unknown":
    for _ in range(100):
        assert locked.fork_in_own_thread() == 7
for _ in range(3 if sys.argv[2] == "known" else 0):
    thread = threading.Thread(target=unlocked.fork_on_request)
    thread.start()
    locked.tell_and_wait()
    thread.join()
print("forked")
"""


@pytest.mark.parametrize("thread", ["unknown", "known"])
def test_a_fork_that_the_holder_of_the_gil_waits_for(
    run_mprun: RunCommand, build: Compile, tmp_path: Path, thread: str
) -> None:
    """A thread unknown to Python forks as without mprun; a known one waits, for a limited time."""
    library = build("fork_beside_gil", "-shared", "-fPIC", output="libfork_beside_gil.so")
    program = tmp_path / "program.py"
    program.write_text(BESIDE_GIL.replace("PATIENCE", "60"), encoding="utf-8")
    run = run_mprun("--", harness.MPRUN_PYTHON, program, library, thread, timeout=180).check()
    assert run.stdout == "forked\n"
    assert [warning.split(":")[0] for warning in warnings_of(run)] == (
        ["a thread forked while another held the GIL and did not let go of it"] if thread == "known" else []
    )


# --- OpenMP ------------------------------------------------------------------------------------

REGION = ["-fopenmp", "-shared", "-fPIC"]


def system_libgomp() -> Path:
    """The one that this compiler links with."""
    name = run_tool("cc", "-print-file-name=libgomp.so.1").strip()
    if not os.path.isabs(name):
        pytest.skip("no libgomp.so.1")
    return Path(name).resolve()


@pytest.fixture(scope="module", name="gomp")
def library_with_system_libgomp(build: Compile) -> Path:
    return build("region", *REGION, output="libregion.so")


def library_with_copy(build: Compile, folder: Path, name: str, *changes: tuple[bytes, bytes]) -> Path:
    """A library that uses a copy of libgomp: a file of this name (as long as libgomp.so.1), changed."""
    code = system_libgomp().read_bytes()
    for old, new in ((b"libgomp.so.1\0", name.encode() + b"\0"), *changes):
        assert len(old) == len(new) and old in code
        code = code.replace(old, new)
    copy = folder / name
    copy.write_bytes(code)
    build("region", "-c", "-fopenmp", "-fPIC", output="region.o")
    library = folder / f"libregion-{name}"
    run_tool("cc", "-shared", "-o", library, build("region", output="region.o"), copy, f"-Wl,-rpath,{folder}")
    return library


def test_the_copies_are_copies(build: Compile, gomp: Path, tmp_path: Path) -> None:
    """Else the tests below would prove nothing."""
    other = library_with_copy(build, tmp_path, "libgomq.so.1")
    assert "libgomp.so.1" in run_tool("ldd", gomp)
    assert str(tmp_path / "libgomq.so.1") in run_tool("ldd", other)
    assert "libgomp.so.1" not in run_tool("ldd", other)


def test_two_copies_of_libgomp(
    run_mprun: RunCommand, build: Compile, gomp: Path, tmp_path: Path
) -> None:
    """Each opened RTLD_LOCAL; both used before and after the fork, in both processes."""
    other = library_with_copy(build, tmp_path, "libgomq.so.1")
    program = build("fork_with_libraries")
    assert warnings_of(run_mprun("--", program, "used", gomp, other).check()) == []
    off = {"MPRUN_ADAPTERS": "-libgomp"}
    for library in (gomp, other):
        run_mprun("--", program, "used", library, env=off).check(HANGS)


def test_an_old_copy_of_libgomp(
    run_mprun: RunCommand, build: Compile, gomp: Path, tmp_path: Path
) -> None:
    """It is named, with the cure, if it was used; copies beside it are made safe."""
    gone = (b"omp_pause_resource_all\0", b"omp_pause_resource_alx\0")
    old = library_with_copy(build, tmp_path, "libgomo.so.1", gone)
    run = run_mprun("--", build("fork_with_libraries"), "idle", gomp, old).check()
    [warning] = warnings_of(run)
    assert warning.startswith(f"{tmp_path / 'libgomo.so.1'} is too old")
    assert "spawn" in warning


def test_a_fork_inside_a_region(run_mprun: RunCommand, build: Compile) -> None:
    run = run_mprun("--", build("region_at_fork", "-fopenmp")).check()
    [warning] = warnings_of(run)
    assert "fork() inside an OpenMP parallel region" in warning
    assert "libgomp" in warning


def test_libomp_is_left_alone(run_mprun: RunCommand, build: Compile, tmp_path: Path) -> None:
    if shutil.which("clang") is None:
        pytest.skip("no clang")
    try:
        library = build("region", *REGION, compiler="clang", output="libregion-omp.so")
    except AssertionError as error:
        pytest.skip(f"clang has no libomp: {error}")
    assert "libomp" in run_tool("ldd", library)
    run = run_mprun("--", build("fork_with_libraries"), "used", library).check()
    assert warnings_of(run) == []


# --- sanitizers --------------------------------------------------------------------------------


@pytest.mark.parametrize("sanitizer", ["address", "undefined"])
def test_a_sanitized_program(run_mprun: RunCommand, build: Compile, sanitizer: str) -> None:
    """It starts although its run-time is not the first library."""
    try:
        program = build("plain", f"-fsanitize={sanitizer}", output=f"plain-{sanitizer}")
    except AssertionError as error:
        pytest.skip(f"cc has no {sanitizer} sanitizer: {error}")
    run = run_mprun("--", program, "an argument").check(43)
    assert (run.stdout, run.stderr) == ("1 arguments, first an argument\n", "a complaint\n")


@pytest.mark.parametrize("given", [None, "detect_leaks=0"])
def test_a_program_without_a_sanitizer_gets_no_options_for_one(
    run_mprun: RunCommand, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    monkeypatch.delenv("ASAN_OPTIONS", raising=False)  # tests/run sets it
    print_it = "import os; print([(n, v) for n, v in os.environ.items() if 'ASAN' in n])"
    env = {} if given is None else {"ASAN_OPTIONS": given}
    run = run_mprun("--", harness.MPRUN_PYTHON, "-c", print_it, env=env).check()
    assert run.stdout == f"{list(env.items())}\n"


@pytest.mark.parametrize("leaks", ["0", "1"])
def test_a_sanitized_program_keeps_its_options(
    run_mprun: RunCommand, build: Compile, leaks: str
) -> None:
    """mprun's options are defaults; its own still count."""
    try:
        program = build("plain", "-fsanitize=address", output="plain-address")
    except AssertionError as error:
        pytest.skip(f"cc has no such sanitizer: {error}")
    env = {"ASAN_OPTIONS": f"help=1:detect_leaks={leaks}"}
    run = run_mprun("--", program, env=env)
    assert re.search(rf"(?s)detect_leaks\W.*?Current Value: {'true' if leaks == '1' else 'false'}", run.stderr)
