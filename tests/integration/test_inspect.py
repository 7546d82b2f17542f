"""`mprun inspect`: the verdict and its exit code, every thread, the forms of the report, and what may be in the way."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import MPRUN_PYTHON, Run, RunCommand, Running, StartCommand, wait_until

# Two named threads that take two mutexes the other way round, and a main thread that joins them.
LOCK_CYCLE = r"""
#include <pthread.h>
#include <sys/prctl.h>
static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t both;
static void* take(void* first) {
  const int mine = first != 0;
  prctl(PR_SET_NAME, mine ? "left\033[31m" : "right", 0, 0, 0);
  pthread_mutex_lock(&locks[mine]);
  pthread_barrier_wait(&both);
  pthread_mutex_lock(&locks[1 - mine]);
  return 0;
}
int main(void) {
  pthread_t threads[2];
  pthread_barrier_init(&both, 0, 2);
  for (long i = 0; i < 2; ++i) pthread_create(&threads[i], 0, take, (void*)i);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], 0);
  return 0;
}
"""

# A pool whose task was lost with its worker: join() waits forever.
LOST_TASK = """
import multiprocessing
import os
import signal


def work():
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    pool = multiprocessing.get_context("fork").Pool(2)
    pool.apply_async(work)
    pool.close()
    pool.join()
"""

# A child that can never continue, beside a parent that counts.
PARTIAL = """
import os

reads, writes = os.pipe()
if os.fork() == 0:
    os.read(reads, 1)
os.close(reads)
os.close(writes)
while True:
    pass
"""

# A thread waits for a mutex whose owner has ended, while the first thread sleeps now and then: no deadlock.
ORPHANED_LOCK = r"""
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void* take(void* unused) {
  pthread_mutex_lock(&mutex);
  return unused;
}
int main(void) {
  pthread_t owner, waiter;
  pthread_create(&owner, 0, take, 0);
  pthread_join(owner, 0);
  pthread_create(&waiter, 0, take, 0);
  for (;;) usleep(20000);
}
"""

STUCK, BAD_USAGE, MAY_NOT_LOOK = 1, 2, 4  # exit codes
PROVED = {"deadlock", "partial-deadlock", "orphaned-lock"}

STATES = {"blocked for ever", "blocked", "running", "stopped", "ended"}


@pytest.fixture
def start_victim(start_plain: StartCommand) -> Iterator[Any]:
    """start_victim(*argv) -> Running: a program to look at, ended with the test."""
    victims: list[Running] = []

    def start(*argv: str | Path, **options: Any) -> Running:
        victims.append(start_plain(*argv, **options))
        return victims[-1]

    yield start
    for victim in victims:
        victim.stop()


@pytest.fixture
def lock_cycle(tmp_path: Path) -> Path:
    """The program that deadlocks on two mutexes."""
    return compiled(tmp_path, "lock_cycle", LOCK_CYCLE)


def compiled(folder: Path, name: str, text: str) -> Path:
    """A program in C."""
    source = folder / f"{name}.c"
    source.write_text(text, encoding="utf-8")
    subprocess.run(["gcc", "-O1", "-pthread", "-o", folder / name, source], check=True)
    return folder / name


def python(script: str) -> tuple[str, ...]:
    """A command line for a script given as text."""
    return (MPRUN_PYTHON, "-c", script)


def looked(run: Run) -> Run:
    """Fails unless the process could be looked into, and the exit code says what the first line says."""
    stuck = run.stdout.startswith(("deadlock", "partial deadlock", "orphaned lock")) and "hang proved (" in run.stdout
    return run.check(STUCK if stuck else 0)


def inspect_until(run_mprun: RunCommand, pid: int, wanted: str, timeout: float = 40) -> Run:
    """Inspects again until the text matches the pattern."""

    def look() -> Run | None:
        run = looked(run_mprun("inspect", str(pid)))
        return run if re.search(wanted, run.stdout) else None

    return wait_until(look, timeout, f"{wanted!r} in what mprun inspect says")


def report_of(run_mprun: RunCommand, pid: int) -> dict[str, Any]:
    """The JSON report."""
    run = run_mprun("inspect", "--json", str(pid))
    report = json.loads(run.stdout)
    run.check(STUCK if report["verdict"] in PROVED else 0)
    return report


def check_report(report: dict[str, Any]) -> None:
    """Has all the keys of a hang report, each of its type."""
    assert report["version"] == 1
    assert report["verdict"] in {"live", *PROVED}
    assert {"seconds_since_progress", "join", "cause", "edges", "deaths"} <= report.keys()
    assert isinstance(report["moving"], bool)
    assert all(isinstance(note, str) for note in report["notes"])
    for process in report["processes"]:
        assert process["origin"] in {"fork", "exec"}
        assert isinstance(process["command"], str) and isinstance(process["ppid"], int)
        for thread in process["threads"]:
            assert thread["state"] in STATES
            assert isinstance(thread["name"], str)
            for frame in thread["python"]:
                assert {"file", "line", "function"} == frame.keys()
            if thread["wait"] is not None:
                assert {"kind", "timed", "object", "wakers"} <= thread["wait"].keys()
    for edge in report["edges"]:
        assert {"from", "to", "why"} == edge.keys()


def test_a_deadlock_is_proved(
    run_mprun: RunCommand, start_victim: Any, lock_cycle: Path
) -> None:
    pid = start_victim(lock_cycle).pid
    text = inspect_until(run_mprun, pid, "^deadlock").stdout
    lines = text.splitlines()
    assert lines[0] == "deadlock: nothing in this tree can ever move again"
    assert "hang proved (deadlock): pthread_join in process" in text
    assert "(lock-cycle)" in text and "cure:" in text
    assert len(re.findall(r'^    thread \d+ ".*" is blocked for ever: ', text, re.MULTILINE)) == 3
    assert '"right"' in text
    assert "\033" not in text and '"left?[31m"' in text  # a name must not colour the terminal
    assert "pthread_mutex_lock (libc.so.6)" in text and "waits for mutex 0x" in text

    report = report_of(run_mprun, pid)
    check_report(report)
    assert report["verdict"] == "deadlock" and report["cause"]["id"] == "lock-cycle"
    assert report["join"]["call"] == "pthread_join"
    assert report["join"]["waiting_seconds"] is None  # one look does not show it
    (process,) = report["processes"]
    assert process["pid"] == pid and process["ppid"] == os.getpid()
    assert {thread["state"] for thread in process["threads"]} == {"blocked for ever"}


def test_a_pool_that_lost_a_task(run_mprun: RunCommand, start_victim: Any, tmp_path: Path) -> None:
    script = tmp_path / "lost_task.py"
    script.write_text(LOST_TASK, encoding="utf-8")
    pid = start_victim(MPRUN_PYTHON, script).pid
    text = inspect_until(run_mprun, pid, "^deadlock").stdout
    assert re.search(r"multiprocessing\.pool\.Pool\.join at \S*lost_task\.py:\d+ waits", text)
    assert f"forked child of {pid}" in text
    report = report_of(run_mprun, pid)
    check_report(report)
    assert len(report["processes"]) == 3
    assert {edge["to"] for edge in report["edges"]} >= {pid}


# A library whose frames are described by the frame pointer, as all are on Ubuntu, and a program that waits in it.
FRAMED_LIBRARY = "#include <unistd.h>\nint wait_in_library(int from) { char c; return read(from, &c, 1) == 1; }\n"
ITS_CALLER = """
#include <unistd.h>
int wait_in_library(int from);
int main(void) { int ends[2]; return pipe(ends) != 0 || wait_in_library(ends[0]); }
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="frame pointers are found on x86-64 only")
@pytest.mark.parametrize("call", ["-fplt", "-fno-plt"])
def test_the_callers_of_a_library_with_frame_pointers(
    run_mprun: RunCommand, start_victim: Any, tmp_path: Path, call: str
) -> None:
    """Which is called by the table of linked functions, or by an address in memory."""
    library, program = tmp_path / "libframed.so", tmp_path / "caller"
    for result, text, options in (
        (library, FRAMED_LIBRARY, ["-fno-omit-frame-pointer", "-shared", "-fPIC"]),
        (program, ITS_CALLER, ["-fomit-frame-pointer", call, f"-L{tmp_path}", "-lframed", f"-Wl,-rpath,{tmp_path}"]),
    ):
        source = result.with_suffix(".c")
        source.write_text(text)
        subprocess.run(["cc", "-O1", str(source), *options, "-o", str(result)], check=True)
    victim = start_victim(program)
    report = inspect_until(run_mprun, victim.pid, r"wait_in_library \(libframed.so\)").stdout
    assert re.search(r"wait_in_library \(libframed.so\)\n +main \(caller\)", report), report


def test_a_sleeping_program_is_live(run_mprun: RunCommand, start_victim: Any) -> None:
    pid = start_victim(*python("import time; time.sleep(1000)")).pid
    text = inspect_until(run_mprun, pid, "it may go on: it sleeps").stdout
    assert text.startswith("live: 1 thread of 1 process, and each of them can still move\n")
    assert "<string>:1 in <module>" in text
    assert "hang" not in text
    report = report_of(run_mprun, pid)
    check_report(report)
    assert (report["verdict"], report["cause"], report["join"]) == ("live", None, None)
    assert report["processes"][0]["threads"][0]["wait"]["why_live"] == "it sleeps"


def test_a_reader_of_our_pipe_is_live(run_mprun: RunCommand, start_victim: Any) -> None:
    reads, writes = os.pipe()
    try:
        code = f"import os; os.read({reads}, 1)"
        pid = start_victim(*python(code), pass_fds=[reads, writes]).pid
        text = inspect_until(run_mprun, pid, "a pipe from outside").stdout
        assert text.startswith("live:")
    finally:
        os.close(reads)
        os.close(writes)


def test_a_pipe_of_its_own_is_not(run_mprun: RunCommand, start_victim: Any) -> None:
    pid = start_victim(*python("import os; os.read(os.pipe()[0], 1)")).pid
    assert "pipe-never-closed" in inspect_until(run_mprun, pid, "^deadlock").stdout


@pytest.mark.parametrize("ours", [True, False])
def test_a_file_lock(
    run_mprun: RunCommand, start_victim: Any, tmp_path: Path, ours: bool
) -> None:
    """A lock belongs to the open file: where the test has that open too, it could release the lock."""
    path = tmp_path / "file"
    path.touch()
    fd = os.open(path if ours else os.devnull, os.O_RDWR)
    first = str(fd) if ours else f"os.open({str(path)!r}, os.O_RDWR)"
    code = f"""
import fcntl, os
first = {first}
fcntl.flock(first, fcntl.LOCK_EX)
fcntl.flock(os.open({str(path)!r}, os.O_RDWR), fcntl.LOCK_EX)
"""
    try:
        pid = start_victim(*python(code), pass_fds=[fd]).pid
        if ours:
            wanted = "^live: .*\\n(.*\\n)*.*a file that is open outside too"
        else:
            wanted = "^deadlock"
        inspect_until(run_mprun, pid, wanted)
    finally:
        os.close(fd)


def test_a_tree_that_moves(run_mprun: RunCommand, start_victim: Any) -> None:
    pid = start_victim(*python("while True: pass")).pid
    text = inspect_until(run_mprun, pid, r"(?m)^    thread \d+ \"\S+\" runs$").stdout
    assert text.startswith("live (moving): 1 thread of 1 process ran while mprun looked\n")
    report = report_of(run_mprun, pid)
    check_report(report)
    assert report["moving"] and report["verdict"] == "live"


def test_a_part_that_is_stuck(run_mprun: RunCommand, start_victim: Any) -> None:
    pid = start_victim(*python(PARTIAL)).pid
    text = inspect_until(run_mprun, pid, "^partial deadlock").stdout
    assert text.startswith("partial deadlock: 1 of 2 processes can never move again; the rest can")
    assert "hang proved (partial-deadlock)" in text
    report = report_of(run_mprun, pid)
    check_report(report)
    states = {p["origin"]: p["threads"][0]["state"] for p in report["processes"]}
    assert states == {"exec": "running", "fork": "blocked for ever"}


def test_a_stopped_program(run_mprun: RunCommand, start_victim: Any) -> None:
    victim = start_victim(*python("import time; time.sleep(1000)"))
    victim.send_signal(signal.SIGSTOP)
    inspect_until(run_mprun, victim.pid, r"(?m)^    thread \d+ \"\S+\" is stopped$")


def test_dot(run_mprun: RunCommand, start_victim: Any, tmp_path: Path) -> None:
    script = tmp_path / "lost_task.py"
    script.write_text(LOST_TASK, encoding="utf-8")
    pid = start_victim(MPRUN_PYTHON, script).pid
    inspect_until(run_mprun, pid, "^deadlock")
    graph = run_mprun("inspect", str(pid), "--dot").check(STUCK).stdout
    lines = graph.splitlines()
    assert lines[0] == "digraph hang {" and lines[-1] == "}"
    text = r'"(?:[^"\\]|\\.)*"'
    statement = re.compile(rf"  (?:label={text}|node \[shape=box\]|{text}(?: -> {text})? \[.*\]);")
    assert all(statement.fullmatch(line) for line in lines[1:-1]), graph
    assert any(line.startswith(f'  "{pid}" -> "') for line in lines)
    dot = shutil.which("dot")
    if dot:
        subprocess.run([dot, "-Tsvg"], input=graph, text=True, check=True, capture_output=True)


def test_record(run_mprun: RunCommand, start_victim: Any, tmp_path: Path, lock_cycle: Path) -> None:
    pid = start_victim(lock_cycle).pid
    inspect_until(run_mprun, pid, "^deadlock")
    file = tmp_path / "recording"
    run = run_mprun("inspect", "--record", file, str(pid)).check(STUCK)
    assert run.stdout.startswith("deadlock")
    kept = file.read_text(encoding="utf-8", errors="replace")
    for question in (f"{pid}/stat", f"{pid}/task/{pid}/syscall", f"{pid}/maps"):
        assert question in kept
    missing = run_mprun("inspect", "--record", tmp_path / "no" / "folder", str(pid)).check(2)
    assert f"inspect: cannot write {tmp_path}/no/folder" in missing.stderr


def test_wait_ends_as_soon_as_it_is_sure(run_mprun: RunCommand, start_victim: Any, lock_cycle: Path) -> None:
    """A time limit of the test's own would fail it."""
    idle = start_victim(*python("import time; time.sleep(1000)")).pid
    inspect_until(run_mprun, idle, "it may go on: it sleeps")
    assert run_mprun("inspect", "--wait", "1000", str(idle)).check().stdout.startswith("live")
    stuck = start_victim(lock_cycle).pid
    assert run_mprun("--wait=1000s", "inspect", str(stuck)).check(STUCK).stdout.startswith("deadlock")


def test_wait_has_its_seconds_before_the_word_too(run_mprun: RunCommand, start_victim: Any) -> None:
    pid = start_victim(*python("while True: pass")).pid
    run_mprun("--wait=1", "inspect", str(pid)).check()
    run_mprun("inspect", str(pid), "--wait", "0.1").check()


def test_wait_lasts_while_a_tree_moves(run_mprun: RunCommand, start_victim: Any, tmp_path: Path) -> None:
    """It is stuck once the file is there, which is after the first look."""
    go_on = tmp_path / "go_on"
    code = f"""
import os
reads, writes = os.pipe()
while not os.path.exists({str(go_on)!r}):
    pass
os.read(reads, 1)
"""
    pid = start_victim(*python(code)).pid
    inspect_until(run_mprun, pid, r"^live \(moving\)")
    go_on.touch()
    run = run_mprun("inspect", str(pid), "--wait", "60").check(STUCK)
    assert run.stdout.startswith("deadlock")


def test_wait_is_over(run_mprun: RunCommand, start_victim: Any) -> None:
    pid = start_victim(*python("while True: pass")).pid
    inspect_until(run_mprun, pid, r"^live \(moving\)")
    assert run_mprun("inspect", "--wait", "1s", str(pid)).check().stdout.startswith("live (moving)")


def test_wait_finds_an_orphaned_lock(run_mprun: RunCommand, start_victim: Any, tmp_path: Path) -> None:
    pid = start_victim(compiled(tmp_path, "orphaned_lock", ORPHANED_LOCK)).pid
    run = run_mprun("inspect", "--wait", "60", str(pid)).check(STUCK)
    assert run.stdout.startswith("orphaned lock: 1 thread waits for what nobody can release; the rest can move\n")
    assert "hang proved (orphaned-lock)" in run.stdout and "(mutex-owner-ended)" in run.stdout
    run = run_mprun("inspect", "--json", "--wait", "60", str(pid)).check(STUCK)
    report = json.loads(run.stdout)
    check_report(report)
    assert report["verdict"] == "orphaned-lock"
    states = [thread["state"] for thread in report["processes"][0]["threads"]]
    assert states.count("blocked for ever") == 1


def test_a_part_that_may_be_idle_is_live(run_mprun: RunCommand, start_victim: Any) -> None:
    """What `mprun -- COMMAND` does not report either."""
    code = """
import multiprocessing, time
pool = multiprocessing.get_context("fork").Pool(2)
while True:
    time.sleep(0.01)
"""
    pid = start_victim(*python(code)).pid
    wait_until(lambda: len(harness.descendants(pid)) == 2, 30)
    for _ in range(3):
        assert "hang proved" not in run_mprun("inspect", "--wait", "3", str(pid)).check().stdout


# A server with two threads that answers until it is told to deadlock: each thread then has one lock and wants the other.
SERVER = """
import socket, sys, threading

locks = [threading.Lock(), threading.Lock()]
both = threading.Barrier(2)


def lock_both(first):
    with locks[first]:
        both.wait()
        with locks[1 - first]:
            pass


server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    client, _ = server.accept()
    if client.recv(1) == b"d":
        break
    client.sendall(b"ok")
    client.close()
threads = [threading.Thread(target=lock_both, args=(first,)) for first in (0, 1)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_the_liveness_probe_of_the_manual(run_mprun: RunCommand, start_victim: Any) -> None:
    """It passes on a server that idles, before and after a request, and fails once the server is deadlocked."""
    page = (harness.ROOT / "man/mprun.1").read_text(encoding="utf-8")
    words = json.loads(re.search(r"^    command: (\[.*\])$", page, re.MULTILINE)[1])
    assert words[0] == "mprun" and words[-1] == "1"
    server = start_victim(*python(SERVER))
    probe = [*words[1:-1], str(server.pid)]
    port = int(wait_until(lambda: server.stdout.partition("\n")[0], 30))
    run_mprun(*probe).check()
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"x")
        assert client.recv(2) == b"ok"
    run_mprun(*probe).check()
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"d")
        wait_until(lambda: len(os.listdir(f"/proc/{server.pid}/task")) == 3, 30)
        run = run_mprun(*probe).check(STUCK)
    assert run.stdout.startswith("deadlock") and "(lock-cycle)" in run.stdout


# A machine of its own: the first process is an init, with a server that is stuck, one that idles, and mprun.
MACHINE = """#!/bin/sh
{python} -c 'import os; os.read(os.pipe()[0], 1)' &
{python} -c 'import time; time.sleep(1000)' &
{mprun} inspect --wait 30 $! >/dev/null || exit
{mprun} inspect --all --wait 10 {options}
code=$?
kill -9 -1
exit $code
"""


def test_all_trees_of_a_machine(mprun: Path, tmp_path: Path) -> None:
    lines = all_trees(mprun, tmp_path, "", STUCK).splitlines()
    found = dict(re.fullmatch(r"\d+ ([a-z-]+(?:, [a-z-]+)?|live \(moving\)): 1 process: (.*)", line).groups()[::-1] for line in lines)
    by_command = {re.sub(r".* -c ", "", command): verdict for command, verdict in found.items()}
    assert by_command["import os; os.read(os.pipe()[0], 1)"] == "deadlock, pipe-never-closed"
    assert by_command["import time; time.sleep(1000)"] == "live"
    reports = json.loads(all_trees(mprun, tmp_path, "--json", STUCK))
    assert sorted(report["verdict"] for report in reports)[0] == "deadlock"


def all_trees(mprun: Path, folder: Path, options: str, code: int) -> str:
    """What is printed on that machine."""
    init = folder / "init"  # its name makes it one
    init.write_text(MACHINE.format(python=MPRUN_PYTHON, mprun=mprun, options=options), encoding="utf-8")
    init.chmod(0o755)
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", init]
    if subprocess.run([*command[:-1], "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no PID namespace can be made here")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done
    return done.stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["inspect"], "inspect: name the PID of a process, or give --all"),
        (["inspect", "python"], "inspect: PID: found python, allowed: the PID of a process"),
        (["inspect", "0"], "inspect: PID: found 0, allowed: the PID of a process"),
        (["inspect", "-3"], "inspect: PID: found -3, allowed: the PID of a process"),
        (["inspect", "12x"], "inspect: PID: found 12x, allowed: the PID of a process"),
        (["inspect", "99999999999999"], "inspect: PID: found 99999999999999, allowed"),
        (["inspect", "1", "2"], "inspect: found two PIDs, allowed: one, or --all"),
        (["inspect", "--what", "1"], "unknown option --what"),
        (["inspect", "1", "--what"], "unknown option --what"),
        (["inspect", "--json", "--dot", "1"], "inspect: --json and --dot do not go together"),
        (["inspect", "--all", "1"], "inspect: --all and a PID do not go together"),
        (["inspect", "--all", "--dot"], "inspect: --all and --dot do not go together"),
        (["inspect", "--all", "--record", "f"], "inspect: --all and --record do not go together"),
        (["inspect", "--wait", "1"], "inspect: name the PID of a process"),
        (["inspect", "1", "--wait"], "inspect: --wait needs seconds, for example --wait 5"),
        (["inspect", "--wait=soon", "1"], "inspect: --wait needs seconds"),
        (["submit", "--nodes", "1", "--wait=5", "job.json"], "submit: --wait takes no seconds"),
        (["-n", "3", "inspect", "1"], "--processes 3 is only valid with a job, `mprun -- COMMAND`"),
        (["inspect", "--", "1"], "inspect: found --, allowed: options and PID"),
        (["--dot", "job.json"], "--dot is only valid with `mprun inspect`"),
        (["--record", "f", "job.json"], "--record is only valid with `mprun inspect`"),
    ],
)
def test_a_wrong_command_line(run_mprun: RunCommand, words: list[str], complaint: str) -> None:
    run = run_mprun(*words).check(2)
    assert complaint in run.stderr
    assert run.stdout == ""


def test_no_such_process(run_mprun: RunCommand) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    run = run_mprun("inspect", str(ended.pid)).check(2)
    assert run.stderr == f"mprun: inspect: there is no process {ended.pid}\n"


def test_a_thread_number_is_refused_with_its_process(
    run_mprun: RunCommand, start_victim: Any, lock_cycle: Path
) -> None:
    pid = start_victim(lock_cycle).pid
    threads = Path(f"/proc/{pid}/task")
    wait_until(lambda: len(os.listdir(threads)) == 3)
    other = max(os.listdir(threads), key=int)
    run = run_mprun("inspect", other).check(2)
    assert f"{other} is a thread of process {pid}; run `mprun inspect {pid}`" in run.stderr


def test_another_users_process(
    mprun: Path, start_victim: Any, tmp_path: Path, lock_cycle: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can run as another user")
    pid = start_victim(lock_cycle).pid
    program = _public_copy(mprun)
    try:
        done = _as_other_user([program, "inspect", str(pid)])
    finally:
        shutil.rmtree(program.parent)
    assert done.returncode == MAY_NOT_LOOK
    assert done.stdout == "" and done.stderr.count("\n") == 1
    assert f"process {pid} (lock_cycle) may not be looked into: it is another user's" in done.stderr


def test_an_unprivileged_user_proves_as_well(mprun: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("the other tests show it")
    program = _public_copy(mprun)
    # A shell is the parent, so that it can be read; it inspects until there is something to report.
    script = f"""
        {MPRUN_PYTHON} -c 'import os; os.read(os.pipe()[0], 1)' & pid=$!
        for i in $(seq 100); do
            {program} inspect $pid >{program.parent}/out || [ $? = 1 ] || break
            grep -q ^deadlock {program.parent}/out && break
        done
        cat {program.parent}/out
        kill $pid
    """
    try:
        done = _as_other_user(["sh", "-c", script])
    finally:
        shutil.rmtree(program.parent)
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    if scope.exists() and scope.read_text(encoding="ascii").strip() != "0":
        assert "kernel.yama.ptrace_scope" in done.stderr
    else:
        assert done.stdout.startswith("deadlock:"), done


def _public_copy(program: Path) -> Path:
    """A copy that every user may run, in a folder that every user may write."""
    made = subprocess.run(
        ["mktemp", "-d", "/tmp/mprun-inspect-XXXXXX"], check=True, capture_output=True, text=True
    )
    folder = Path(made.stdout.strip())
    folder.chmod(0o777)
    copy = folder / "mprun"
    shutil.copy(program, copy)
    copy.chmod(0o755)
    return copy


def _as_other_user(argv: list[str | Path]) -> subprocess.CompletedProcess[str]:
    """Runs a command as a user with no rights."""
    return subprocess.run(
        argv, user=65534, group=65534, extra_groups=[], cwd="/", capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


def test_usr1_shows_what_a_job_does(start_job: StartCommand) -> None:
    script = "import time\n\n\ndef nap(_):\n    time.sleep(1000)\n"
    spec = {"version": 1, "script": "nap.py", "function": "nap", "inputs": {"range": 2}}
    job = start_job({**spec, "processes": 2}, "--progress", "always", scripts={"nap.py": script})

    wait_until(lambda: "started" in job.stderr, 30)  # from now on it handles signals

    def answers() -> int:  # the second text: no worker is there yet
        return len(re.findall("every process and thread|nothing: there is no process", job.stderr))

    def shown() -> bool:
        before = answers()
        job.send_signal(signal.SIGUSR1)
        wait_until(lambda: answers() > before, 30)
        return bool(re.search(r"nap\.py:5 in nap", job.stderr))

    wait_until(shown, 60, "the stack of a worker on standard error")
    assert re.search(r"(?m)^live", job.stderr)
    assert "it may go on: it sleeps" in job.stderr
    job.send_signal(signal.SIGINT)
    job.send_signal(signal.SIGINT)
    assert job.wait().returncode == 130


def test_usr1_knows_of_alarms(start_job: StartCommand) -> None:
    """They are not in /proc, but in the memory of the worker's preload library."""
    script = """
import os, signal

def work(_):
    signal.setitimer(signal.ITIMER_REAL, 3600)
    reader, writer = os.pipe()
    print("reads", flush=True)
    os.read(reader, 1)
"""
    spec = {"version": 1, "script": "alarm.py", "function": "work", "inputs": {"range": 1}}
    job = start_job({**spec, "processes": 1}, scripts={"alarm.py": script})
    wait_until(lambda: (job.run_dir / "logs/worker-0.out").exists(), 30)
    wait_until(lambda: "reads" in (job.run_dir / "logs/worker-0.out").read_text(), 30)

    def shown() -> bool:
        count = job.stderr.count("every process and thread")
        job.send_signal(signal.SIGUSR1)
        wait_until(lambda: job.stderr.count("every process and thread") > count, 30)
        return "alarm.py:8 in work" in job.stderr

    wait_until(shown, 60, "the stack of the worker on standard error")
    assert "has asked for an alarm" in job.stderr
    assert "blocked for ever" not in job.stderr
    job.send_signal(signal.SIGINT)
    job.send_signal(signal.SIGINT)
    assert job.wait().returncode == 130


def test_usr1_is_left_to_a_program(start_mprun: StartCommand, tmp_path: Path) -> None:
    script = tmp_path / "takes.py"
    script.write_text(
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
        "print('ready', flush=True)\nsignal.sigwait([signal.SIGUSR1])\nprint('taken')\n",
        encoding="utf-8",
    )
    program = start_mprun("--", MPRUN_PYTHON, script, output=False)
    wait_until(lambda: "ready" in program.stdout, 30)
    program.send_signal(signal.SIGUSR1)
    run = program.wait().check()
    assert run.stdout == "ready\ntaken\n"
    assert "every process and thread" not in run.stderr
