"""What a worker is as a process, and how mprun reports every way it can end: for each start method."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import RunCommand

# How a worker can end itself; CRASH is one of the keys of the dictionary.
CRASH_MODULE = """
import ctypes
import os
import resource
import signal
import subprocess
import sys

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def crash(kind):
    if kind == "segv":
        ctypes.string_at(0)
    elif kind == "exit":
        sys.exit(7)
    elif kind == "_exit":
        os._exit(7)
    elif kind == "_exit0":
        os._exit(0)
    elif kind == "raise":
        raise RuntimeError("out of luck")
    elif kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        return
    raise AssertionError("a crash that was survived")
"""

STARTING_JOB = """
import os

from crashes import crash

WHERE, KIND = os.environ["CRASH_WHERE"], os.environ["CRASH_KIND"]
if WHERE == "import":
    crash(KIND)


def setup():
    if WHERE == "setup":
        crash(KIND)


def worker_setup():
    if WHERE == "worker_setup":
        crash(KIND)


def run(number):
    return number
"""

RUNNING_JOB = """
from crashes import crash


class Bomb(dict):
    def items(self):  # called by json.dumps
        crash(self["kind"])
        return super().items()


def run(kind):
    crash(kind)
    return "fine"


def give_back(kind):
    return Bomb(kind=kind) if kind != "none" else "fine"
"""

# What mprun says of each: a pattern for the text of a failed start, and (type, pattern, attempts)
# of a failed task. Deaths are tried again once, errors are not.
CRASHES: dict[str, tuple[str, tuple[str, str, int]]] = {
    "segv": (r"signal 11\b", ("WorkerDied", r"signal 11\b", 2)),
    "exit": (r"sys\.exit\(7\)", ("SystemExit", r"sys\.exit\(7\)", 1)),
    "_exit": (r"exit code 7\b", ("WorkerDied", r"exit code 7\b", 2)),
    "_exit0": (r"exit code 0\b", ("WorkerDied", r"exit code 0\b", 2)),
    "raise": (r"RuntimeError: out of luck", ("RuntimeError", r"^out of luck$", 1)),
    "kill": (r"signal 9\b", ("WorkerDied", r"signal 9\b", 2)),
}

# Those that end a process by default; 32 and 33 are reserved for the C library.
DEADLY_SIGNALS = [
    number
    for number in (*range(1, 32), 34, 35, 50, 64)
    if number
    not in (
        signal.SIGSTOP,
        signal.SIGCONT,
        signal.SIGTSTP,
        signal.SIGTTIN,
        signal.SIGTTOU,
        signal.SIGCHLD,
        signal.SIGURG,
        signal.SIGWINCH,
    )
]


# --- ends --------------------------------------------------------------------------------------


def test_every_exit_code_is_reported(run_job: RunCommand, start_method: str) -> None:
    run = run_job(
        {
            "script": "leave.py:leave",
            "start_method": start_method,
            "processes": 4,
            "retries": {"on_death": 0},
            "inputs": {"range": 256},
        },
        scripts={"leave.py": "import os\n\n\ndef leave(code):\n    os._exit(code)\n"},
        timeout=120,
    ).check(1)
    results = run.results()
    assert [result["task"] for result in results] == list(range(256))
    for code, result in enumerate(results):
        assert (result["status"], result["attempt"]) == ("failed", 1)
        assert result["error"]["type"] == "WorkerDied"
        assert re.search(rf"exit code {code}\b", result["error"]["message"]), result
    ended = Counter(
        process["exit_code"]
        for process in run.summary()["processes"]
        if process["role"] == "worker" and not process["expected"]
    )
    assert ended == Counter(range(256))
    in_joblog = {int(row["Seq"]) - 1: (row["Exitval"], row["Signal"]) for row in run.joblog()}
    assert {task: in_joblog[task] for task in range(1, 256)} == {
        code: (str(code), "0") for code in range(1, 256)
    }
    assert in_joblog[0] != ("0", "0"), "a task that failed looks like one that did not"


def test_every_signal_is_reported(run_job: RunCommand, start_method: str) -> None:
    script = (
        "import os, resource, signal, time\n"
        "def die(number):\n"
        "    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
        "    if number != signal.SIGKILL:\n"
        "        signal.signal(number, signal.SIG_DFL)\n"
        "    os.kill(os.getpid(), number)\n"
        "    time.sleep(10)\n"
    )
    run = run_job(
        {
            "script": "die.py:die",
            "start_method": start_method,
            "processes": 4,
            "retries": {"on_death": 0},
            "inputs": {"items": DEADLY_SIGNALS},
        },
        scripts={"die.py": script},
        timeout=120,
    ).check(1)
    for number, result in zip(DEADLY_SIGNALS, run.results(), strict=True):
        assert result["status"] == "failed"
        assert result["error"]["type"] == "WorkerDied"
        assert re.search(rf"signal {number}\b", result["error"]["message"]), result
    ended = Counter(
        process["signal"] for process in run.summary()["processes"] if "signal" in process
    )
    assert ended == Counter(DEADLY_SIGNALS)
    in_joblog = {int(row["Seq"]) - 1: row["Signal"] for row in run.joblog()}
    assert [in_joblog[task] for task in range(len(DEADLY_SIGNALS))] == [
        str(number) for number in DEADLY_SIGNALS
    ]


@pytest.mark.parametrize("kind", list(CRASHES))
@pytest.mark.parametrize("where", ["import", "setup", "worker_setup"])
def test_a_crash_while_starting(
    run_job: RunCommand, start_method: str, where: str, kind: str
) -> None:
    run = run_job(
        {
            "script": "starting.py:run",
            "setup": "setup",
            "worker_setup": "worker_setup",
            "start_method": start_method,
            "processes": 2,
            "env": {"CRASH_WHERE": where, "CRASH_KIND": kind},
            "inputs": {"range": 4},
        },
        scripts={"starting.py": STARTING_JOB, "crashes.py": CRASH_MODULE},
    ).check(3)
    assert re.search(CRASHES[kind][0], run.stderr), run
    if kind in ("raise", "exit"):
        assert where in run.stderr, "the stage is not named"
        assert re.search(r'starting\.py", line \d+', run.stderr), "no traceback"
    assert run.summary()["exit_code"] == 3
    assert run.summary()["counts"]["ok"] == 0
    assert run.results() == []


@pytest.mark.parametrize("function", ["run", "give_back"])
def test_a_crash_in_a_task(run_job: RunCommand, start_method: str, function: str) -> None:
    """While it runs, or while its value is written."""
    kinds = [kind for crash in CRASHES for kind in (crash, "none")]
    run = run_job(
        {
            "script": f"running.py:{function}",
            "start_method": start_method,
            "processes": 2,
            "inputs": {"items": kinds},
        },
        scripts={"running.py": RUNNING_JOB, "crashes.py": CRASH_MODULE},
    ).check(1)
    for kind, result in zip(kinds, run.results(), strict=True):
        if kind == "none":
            assert (result["status"], result.get("value"), result["attempt"]) == ("ok", "fine", 1)
            continue
        name, message, attempts = CRASHES[kind][1]
        error = result["error"]
        assert (result["status"], error["type"]) == ("failed", name), result
        assert re.search(message, error["message"]), result
        assert result["attempt"] == attempts, result
        if name == "WorkerDied":
            assert "log" in error
        else:
            assert re.search(r'running\.py", line \d+, in ', error["traceback"])
    assert run.summary()["counts"]["retried"] == 4


def test_how_workers_end_normally(run_job: RunCommand, start_method: str) -> None:
    """Exit handlers run, threads are joined, buffers are flushed; the status is 0."""
    script = """
import atexit
import threading
import time

from events import mark, wait_for


def worker_setup():
    atexit.register(mark, "exited")


def run(number):
    mark("running")
    wait_for("running", 2)
    threading.Thread(target=lambda: (wait_for("go"), mark("joined"))).start()
    print("no newline", end="")
    if number == 1:
        mark("go")
    return number
"""
    run = run_job(
        {
            "script": "normal.py:run",
            "worker_setup": "worker_setup",
            "start_method": start_method,
            "processes": 2,
            "inputs": {"range": 2},
        },
        scripts={"normal.py": script, "events.py": harness.EVENTS},
    ).check()
    assert len(harness.marks(run.run_dir.parent / "exited")) == 2
    assert len(harness.marks(run.run_dir.parent / "joined")) == 2
    assert run.log(0) == run.log(1) == "no newline"
    processes = run.summary()["processes"]
    roles = Counter(process["role"] for process in processes)
    assert roles == (
        {"worker": 2} if start_method == "spawn" else {"worker": 2, "host": 1}
    )
    assert {(process["exit_code"], process["expected"]) for process in processes} == {(0, True)}


# --- the environment of a worker ---------------------------------------------------------------


def test_environment(run_job: RunCommand, start_method: str) -> None:
    script = """
import ctypes
import os
import subprocess

NAMES = ["MPRUN_TASK", "MPRUN_ATTEMPT", "MPRUN_WORKER", "MPRUN_RUN_DIR", "OUTER", "BOTH", "SPEC"]
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p


def look(number):
    if number == 2 and os.environ["MPRUN_ATTEMPT"] == "1":
        raise ValueError("once more")
    getenv = {name: (libc.getenv(name.encode()) or b"").decode() for name in NAMES}
    child = subprocess.run(["printenv", *NAMES], capture_output=True, text=True).stdout.split("\\n")
    copied = subprocess.run(
        ["printenv", *NAMES], capture_output=True, text=True, env=dict(os.environ)
    ).stdout.split("\\n")
    own = {name: os.environ[name] for name in NAMES}
    return [own, getenv, dict(zip(NAMES, child)), dict(zip(NAMES, copied))]
"""
    run = run_job(
        {
            "script": "look.py:look",
            "start_method": start_method,
            "processes": 2,
            "retries": {"on_error": 1},
            "env": {"SPEC": "of the spec", "BOTH": "of the spec"},
            "inputs": {"range": 4},
        },
        scripts={"look.py": script},
        env={"OUTER": "of mprun", "BOTH": "of mprun", "MPRUN_TASK": "stale"},
    ).check()
    for task, result in enumerate(run.results()):
        expected = {
            "MPRUN_TASK": str(task),
            "MPRUN_ATTEMPT": "2" if task == 2 else "1",
            "MPRUN_WORKER": str(result["worker"]),
            "MPRUN_RUN_DIR": str(run.run_dir),
            "OUTER": "of mprun",
            "BOTH": "of the spec",
            "SPEC": "of the spec",
        }
        for seen in result["value"]:
            assert seen == expected


WHERE_JOB = """
import os
import sys

import beside


def where(_):
    return [os.getcwd(), __file__, sys.argv, sys.path[0], __name__ == "__main__", beside.NAME]
"""


def test_working_directory(run_job: RunCommand, start_method: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "jobs" / "work").mkdir(parents=True)
    spec: dict[str, Any] = {
        "version": 1,
        "script": "where.py:where",
        "python": harness.MPRUN_PYTHON,
        "args": ["--flag", "a b"],
        "start_method": start_method,
        "processes": 1,
        "inputs": {"range": 1},
    }
    scripts = {"jobs/where.py": WHERE_JOB, "jobs/beside.py": "NAME = 'found'\n"}
    folder = tmp_path / "jobs"
    seen = []
    for name, more in (("plain", {}), ("own", {"working_directory": "work"})):
        path = folder / f"{name}.json"
        path.write_text(json.dumps({**spec, **more}), encoding="utf-8")
        seen += run_job(path, scripts=scripts, cwd=elsewhere).check().values()
    script = str(folder / "where.py")
    about_script = [script, [script, "--flag", "a b"], str(folder), False, "found"]
    assert seen == [[str(elsewhere), *about_script], [str(folder / "work"), *about_script]]


LOOK_AT_DESCRIPTORS = """
import json
import os
import subprocess
import sys

LIST = '''
import json, os
found = {}
for name in os.listdir("/proc/self/fd"):
    try:
        found[int(name)] = os.readlink("/proc/self/fd/" + name)
    except OSError:
        pass
'''


def look(_):
    names = {}
    exec(LIST, names)
    child = subprocess.run(
        [sys.executable, "-S", "-E", "-c", LIST + "print(json.dumps(found))"],
        stdout=subprocess.PIPE, close_fds=False,
    )
    return [names["found"], json.loads(child.stdout), os.read(0, 10).decode()]
"""


def test_descriptors(run_job: RunCommand, start_method: str) -> None:
    """Workers have the three standard ones and few of mprun's; their children have only the three."""
    run = run_job(
        {
            "script": "look.py:look",
            "start_method": start_method,
            "processes": 3,
            "inputs": {"range": 6},
        },
        scripts={"look.py": LOOK_AT_DESCRIPTORS},
        stdin="not for workers",
    ).check()
    for own, child, read in run.values():
        assert read == ""
        assert own["0"] == child["0"] == "/dev/null"
        assert own["1"].startswith(str(run.run_dir / "logs/worker-"))
        assert own["2"].startswith(str(run.run_dir / "logs/worker-"))
        assert set(child) == {"0", "1", "2"}, child
        # its channel, its results, the board, and one that Python may hold (urandom)
        assert len(own) <= 3 + 4, own


def test_no_descriptor_of_the_caller_leaks(run_job: RunCommand, start_method: str) -> None:
    """The users of a pipe that mprun inherits must see it close: no worker keeps it open."""
    read_end, write_end = os.pipe()
    ours = os.readlink(f"/proc/self/fd/{write_end}")
    try:
        run = run_job(
            {"script": "look.py:look", "start_method": start_method, "inputs": {"range": 2}},
            scripts={"look.py": LOOK_AT_DESCRIPTORS},
            pass_fds=(write_end,),
        ).check()
    finally:
        os.close(read_end)
        os.close(write_end)
    for own, child, _ in run.values():
        assert ours not in own.values(), own
        assert ours not in child.values(), child


def test_signal_dispositions(run_job: RunCommand, start_method: str) -> None:
    """Nothing is blocked, and only what Python itself ignores is ignored."""
    script = """
import re


def look(_):
    with open("/proc/self/status") as status:
        masks = dict(re.findall(r"^Sig(Blk|Ign):\\t([0-9a-f]+)$", status.read(), re.M))
    return {name: int(mask, 16) for name, mask in masks.items()}
"""
    run = run_job(
        {"script": "look.py:look", "start_method": start_method, "inputs": {"range": 2}},
        scripts={"look.py": script},
    ).check()
    by_python = 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)
    assert run.values() == [{"Blk": 0, "Ign": by_python}] * 2


def test_logs(run_job: RunCommand, start_method: str) -> None:
    script = """
import os
import subprocess
import sys

print("imported")


def talk(number):
    print(f"task {number}: print")
    print(f"task {number}: stderr", file=sys.stderr)
    os.write(1, f"task {number}: write\\n".encode())
    subprocess.run(["sh", "-c", f"echo task {number}: child; echo task {number}: child error >&2"])
"""
    run = run_job(
        {
            "script": "talk.py:talk",
            "start_method": start_method,
            "processes": 2,
            "inputs": {"range": 6},
        },
        scripts={"talk.py": script},
    ).check()
    out: list[list[str]] = [[], []]
    err: list[list[str]] = [[], []]
    for task, result in enumerate(run.results()):  # a worker's tasks come in order
        worker = result["worker"]
        out[worker] += [f"task {task}: {word}" for word in ("print", "write", "child")]
        err[worker] += [f"task {task}: stderr", f"task {task}: child error"]
    for worker in {result["worker"] for result in run.results()}:
        lines = [line for line in run.log(worker).splitlines() if line != "imported"]
        assert lines == out[worker]
        assert run.log(worker, "err").splitlines() == err[worker]
    assert run.stdout == ""
    assert "task 0" not in run.stderr
    if start_method == "fork":  # the host's output appears once, and in no worker's log
        assert (run.run_dir / "logs/host.out").read_text() == "imported\n"
        assert "imported" not in run.log(0) + run.log(1)


def test_an_unimportable_name_of_a_script(run_job: RunCommand, start_method: str) -> None:
    """A script may have any name that ends in .py, and may inspect itself as a module."""
    script = """
import pickle
import sys


class Thing:
    pass


def run(_):
    module = sys.modules[__name__]
    return [module.run is run, type(pickle.loads(pickle.dumps(Thing()))).__name__]
"""
    for name in ("with-dash.py", "json.py", "01.py", "spaced name.py"):
        run = run_job(
            {"script": f"{name}:run", "start_method": start_method, "inputs": {"range": 1}},
            scripts={name: script},
        ).check()
        assert run.values() == [[True, "Thing"]]


# --- tasks that start processes ----------------------------------------------------------------


def test_a_task_whose_forked_child_returns(run_job: RunCommand, start_method: str) -> None:
    """Two processes return from the function; the second ends there, and reports nothing to mprun."""
    script = """
import os


def run(number):
    child = os.fork() if number == 3 else 0
    if child and os.waitpid(child, 0)[1] != 0:
        raise ChildProcessError("the copy did not end with 0")
    return number
"""
    run = run_job(
        {
            "script": "forks.py:run",
            "start_method": start_method,
            "processes": 2,
            "inputs": {"range": 40},
        },
        scripts={"forks.py": script},
        timeout=20,
    )
    wrong = [
        (result["task"], result["value"])
        for result in run.results()
        if result["status"] == "ok" and result["value"] != result["task"]
    ]
    assert wrong == []
    assert sorted(result["task"] for result in run.results()) == list(range(40))


@pytest.mark.parametrize("inner", ["fork", "spawn", "forkserver"])
def test_multiprocessing_in_a_task(run_job: RunCommand, start_method: str, inner: str) -> None:
    script = f"""
import multiprocessing


def square(number):
    return number * number


def run(number):
    with multiprocessing.get_context("{inner}").Pool(2) as pool:
        return pool.map(square, [number, number + 1])
"""
    run = run_job(
        {
            "script": "pools.py:run",
            "start_method": start_method,
            "processes": 2,
            "inputs": {"range": 3},
        },
        scripts={"pools.py": script},
    )
    assert run.check().values() == [[0, 1], [1, 4], [4, 9]]


LIGHT_JOB = """
import sys


def run(bare):
    return sorted(set(sys.modules) - set(bare))
"""

# What a worker once loaded for a line or two each; together they took longer than everything else it loads.
HEAVY = {"dataclasses", "difflib", "importlib.abc", "inspect", "pathlib", "secrets", "tempfile", "urllib.parse"} | {
    "random", "signal", "socket", "traceback", "typing",
}  # fmt: skip


def test_a_worker_loads_little(run_job: RunCommand, start_method: str) -> None:
    listing = subprocess.run(
        [harness.MPRUN_PYTHON, "-c", "import json, sys; print(json.dumps(sorted(sys.modules)))"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    spec = {
        "version": 1, "script": "light.py", "function": "run", "start_method": start_method, "processes": 1,
        "inputs": {"items": [json.loads(listing.stdout)]},
    }  # fmt: skip
    (loaded,) = run_job(spec, scripts={"light.py": LIGHT_JOB}).check().values()
    assert "mprun.task" in loaded
    assert not HEAVY & set(loaded)


OWN_NAMES_JOB = """
import random, signal, socket, textwrap, token, typing


def run(number):
    if number == 1:
        raise ValueError("one")
    return [module.mine for module in (random, signal, socket, textwrap, token, typing)]
"""


def test_modules_of_the_script_that_have_names_of_pythons(run_job: RunCommand, start_method: str) -> None:
    """As when Python runs it. A traceback may need Python's own textwrap and token: it has no lines of source then."""
    names = ("random", "signal", "socket", "textwrap", "token", "typing")
    scripts = {f"{name}.py": f"mine = {name!r}\n" for name in names}
    spec = {
        "version": 1, "script": "own.py", "function": "run", "start_method": start_method, "processes": 1, "seed": 7,
        "inputs": {"range": 2},
    }  # fmt: skip
    run = run_job(spec, scripts={**scripts, "own.py": OWN_NAMES_JOB}).check(1)
    first, second = run.results()
    assert first["value"] == list(names)
    assert second["error"]["message"] == "one"
    assert re.search(r'own\.py", line \d+, in run\n(.*\n)*ValueError: one', second["error"]["traceback"])
