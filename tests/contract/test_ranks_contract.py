"""Ranks: the script runs once in every process, and one that fails ends the others."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import RunCommand


def ranks(text: str) -> dict[str, str]:
    """The files of a job of ranks."""
    return {"ranks.py": text, "events.py": harness.EVENTS}


def test_environment_of_ranks(run_job: RunCommand, start_method: str) -> None:
    """The same as torchrun sets; all ranks run at the same time, however many CPUs there are."""
    script = """
import os
import sys

import mprun
from events import mark, wait_for

mark("here")
wait_for("here", 5)
names = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
         "MPRUN_TASK", "MPRUN_ATTEMPT", "MPRUN_WORKER", "MPRUN_RUN_DIR"]
mprun.result({
    "names": {name: os.environ[name] for name in names},
    "rank": mprun.rank(),
    "world_size": mprun.world_size(),
    "script": [__name__, __file__, sys.argv, sys.path[0], sys.modules["__main__"].__file__],
    "pid": os.getpid(),
    "cwd": os.getcwd(),
})
"""
    run = run_job(
        {
            "script": "ranks.py",
            "args": ["--lr", "0.1"],
            "start_method": start_method,
            "processes": 5,
        },
        scripts=ranks(script),
    ).check()
    values = run.values()
    folder = run.run_dir.parent
    script_path = str(folder / "ranks.py")
    port = int(values[0]["names"]["MASTER_PORT"])
    assert 1024 <= port < 65536
    for rank, value in enumerate(values):
        assert value["names"] == {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": "5",
            "LOCAL_WORLD_SIZE": "5",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "MPRUN_TASK": str(rank),
            "MPRUN_ATTEMPT": "1",
            "MPRUN_WORKER": str(rank),
            "MPRUN_RUN_DIR": str(run.run_dir),
        }
        assert (value["rank"], value["world_size"], value["cwd"]) == (rank, 5, str(folder))
        argv = [script_path, "--lr", "0.1"]
        assert value["script"] == ["__main__", script_path, argv, str(folder), script_path]
    assert len({value["pid"] for value in values}) == 5


def test_results_of_ranks(run_job: RunCommand, start_method: str) -> None:
    """One per rank: its last one, or null; and a clean exit is not reported as a failure."""
    script = """
import sys

import mprun

rank = mprun.rank()
print("rank", rank, "speaks")
print("rank", rank, "complains", file=sys.stderr)
if rank == 0:
    mprun.result("first")
    mprun.result({"nan": float("nan"), "list": [1, 2.5, None]})
elif rank == 2:
    try:
        mprun.result(object())
    except TypeError as error:
        mprun.result(str(error))
elif rank == 3:
    mprun.result("before the exit")
    sys.exit(0)
"""
    run = run_job(
        {"script": "ranks.py", "start_method": start_method, "processes": 4},
        scripts=ranks(script),
    ).check()
    values = run.values()
    assert values[:2] == [{"nan": "NaN", "list": [1, 2.5, None]}, None]
    assert "object" in values[2]
    assert values[3] == "before the exit"
    assert [result["worker"] for result in run.results()] == [0, 1, 2, 3]
    for rank in range(4):
        assert run.log(rank).splitlines() == [f"rank {rank} speaks"]
        assert run.log(rank, "err").splitlines() == [f"rank {rank} complains"]
    processes = [p for p in run.summary()["processes"] if p["role"] == "rank"]
    assert sorted(process["worker"] for process in processes) == [0, 1, 2, 3]


def test_results_of_threads(run_job: RunCommand, start_method: str) -> None:
    """Values larger than a pipe takes at once, from many threads: each arrives whole, or the rank would fail."""
    script = """
import threading

import mprun

start = threading.Barrier(4)


def give(letter):
    start.wait()
    for _ in range(20):
        mprun.result(letter * 1_000_000)


threads = [threading.Thread(target=give, args=[letter]) for letter in "abcd"]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if mprun.rank() == 1:
    mprun.result("last")
"""
    run = run_job(
        {"script": "ranks.py", "start_method": start_method, "processes": 2},
        scripts=ranks(script),
    ).check()
    values = run.values()
    assert (len(values[0]), len(set(values[0]))) == (1_000_000, 1)
    assert values[1] == "last"


def test_results_of_forked_processes(run_job: RunCommand, start_method: str) -> None:
    """A process that the rank has forked is no rank: it neither reports for it nor waits for its threads."""
    script = """
import os
import threading

import mprun

done = False


def give():
    while not done:
        mprun.result("x" * 1_000_000)


thread = threading.Thread(target=give)
thread.start()
codes = []
for _ in range(10):
    pid = os.fork()
    if pid == 0:
        mprun.result("y" * 1_000_000)
        os._exit(0)
    codes.append(os.waitpid(pid, 0)[1])
done = True
thread.join()
mprun.result(codes)
if os.fork() == 0:
    mprun.result("a process of its")
    raise RuntimeError("of no concern")
os.wait()
if mprun.rank() == 1:
    raise SystemExit(5)
"""
    run = run_job(
        {"script": "ranks.py", "start_method": start_method, "processes": 1},
        scripts=ranks(script),
    ).check()
    assert run.values() == [[0] * 10]
    script = script.replace("mprun.rank() == 1", "True")
    run = run_job(
        {"script": "ranks.py", "start_method": start_method, "processes": 1},
        scripts=ranks(script),
    ).check(1)
    error = run.results()[0]["error"]
    assert (error["type"], error["message"]) == ("ExitCode", "rank 0 ended with exit code 5")


def test_a_failed_rank_ends_the_others(run_job: RunCommand, start_method: str) -> None:
    """TERM, grace, KILL; the first rank that failed is named with its traceback."""
    script = """
import signal
import sys
import time

import mprun
from events import mark, wait_for

rank = mprun.rank()
if rank == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
elif rank == 3:
    signal.signal(signal.SIGTERM, lambda *_: (mark("terminated"), sys.exit(0)))


def compute():
    raise RuntimeError("rank one is out of luck")


mprun.result("not to be kept")
mark("here")
wait_for("here", 4)
if rank == 1:
    compute()
time.sleep(60)
"""
    run = run_job(
        {
            "script": "ranks.py",
            "start_method": start_method,
            "processes": 4,
            "limits": {"grace_seconds": 3},
        },
        scripts=ranks(script),
        timeout=20,
    ).check(1)
    results = run.results()
    # The last rank ended cleanly on TERM.
    assert [result["status"] for result in results] == ["cancelled", "failed", "cancelled", "ok"]
    error = results[1]["error"]
    assert (error["type"], error["message"]) == ("RuntimeError", "rank one is out of luck")
    assert re.search(r'ranks\.py", line \d+, in compute', error["traceback"])
    assert harness.marks(run.run_dir.parent / "terminated") == [""]
    ends = {p["worker"]: p for p in run.summary()["processes"] if p["role"] == "rank"}
    assert ends[0]["signal"] == signal.SIGKILL
    assert ends[2]["signal"] == signal.SIGTERM
    assert re.search(r"rank 1\b", run.stderr), run
    assert "RuntimeError: rank one is out of luck" in run.stderr
    assert re.search(r'ranks\.py", line \d+, in compute', run.stderr), run


@pytest.mark.parametrize(
    ("end", "name", "message", "key"),
    [
        ("sys.exit(5)", "ExitCode", r"exit code 5\b", ("exit_code", 5)),
        ("sys.exit('all is lost')", "ExitCode", r"exit code 1\b", ("exit_code", 1)),
        ("os._exit(6)", "ExitCode", r"exit code 6\b", ("exit_code", 6)),
        ("os.kill(os.getpid(), 9)", "Signal", r"signal 9\b", ("signal", 9)),
        ("ctypes.string_at(0)", "Signal", r"signal 11\b", ("signal", 11)),
    ],
)
def test_how_a_rank_can_fail(
    run_job: RunCommand,
    start_method: str,
    end: str,
    name: str,
    message: str,
    key: tuple[str, int],
) -> None:
    script = f"""
import ctypes
import os
import resource
import sys

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print("last words", file=sys.stderr, flush=True)
if os.environ["RANK"] == "1":
    {end}
"""
    run = run_job(
        {"script": "ranks.py", "start_method": start_method, "processes": 2},
        scripts=ranks(script),
        timeout=20,
    ).check(1)
    result = run.results()[1]
    assert (result["status"], result["attempt"]) == ("failed", 1)
    assert result["error"]["type"] == name, result
    assert re.search(message, result["error"]["message"])
    assert "last words" in result["error"]["log"]
    assert re.search(r"rank 1\b", run.stderr)
    ended = [p for p in run.summary()["processes"] if p["role"] == "rank" and p["worker"] == 1]
    assert [process[key[0]] for process in ended] == [key[1]]
    if end == "sys.exit('all is lost')":
        assert "all is lost" in run.log(1, "err")


def test_exit_zero_in_the_middle_is_no_failure(run_job: RunCommand, start_method: str) -> None:
    """Many frameworks end with os._exit(0); the other ranks go on."""
    script = """
import os

from events import mark, wait_for

if os.environ["RANK"] == "0":
    mark("leaving")
    os._exit(0)
wait_for("leaving")
"""
    run = run_job(
        {"script": "ranks.py", "start_method": start_method, "processes": 2},
        scripts=ranks(script),
    ).check()
    assert run.values() == [None, None]


def test_arguments_longer_than_a_socket_takes_at_once(
    run_job: RunCommand, start_method: str
) -> None:
    spec = {
        "script": "ranks.py",
        "start_method": start_method,
        "processes": 2,
        "args": ["x" * 1000] * 2000,
    }
    script = "import mprun, sys\n\nmprun.result(sum(map(len, sys.argv[1:])))\n"
    assert run_job(spec, scripts=ranks(script)).check().values() == [2_000_000, 2_000_000]


def test_a_seed_for_ranks(run_job: RunCommand) -> None:
    """Each rank draws its own numbers, the same in every run."""
    script = "import mprun, random\n\nmprun.result(random.random())\n"
    values = [
        run_job(
            {"script": "ranks.py", "start_method": method, "processes": 3, "seed": 11},
            scripts=ranks(script),
        )
        .check()
        .values()
        for method in harness.START_METHODS
    ]
    assert len(set(values[0])) == 3
    assert values[0] == values[1] == values[2]


@pytest.mark.parametrize("inner", ["fork", "spawn"])
def test_multiprocessing_in_a_rank(run_job: RunCommand, start_method: str, inner: str) -> None:
    """The script's own pools work: __main__ is what multiprocessing expects."""
    script = f"""
import multiprocessing

import mprun


def square(number):
    return number * number


if __name__ == "__main__":
    with multiprocessing.get_context("{inner}").Pool(2) as pool:
        mprun.result(pool.map(square, range(5)))
"""
    run = run_job(
        {"script": "ranks.py", "start_method": start_method, "processes": 1},
        scripts=ranks(script),
    )
    assert run.check().values() == [[0, 1, 4, 9, 16]]


def test_programs_as_ranks(run_job: RunCommand, tmp_path: Path) -> None:
    """A script that is no .py file but executable."""
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "$RANK of $WORLD_SIZE: $*"\nexit "$RANK"\n')
    program.chmod(0o755)
    spec: dict[str, Any] = {"script": "program", "args": ["a b", "$HOME"], "processes": 1}
    run = run_job(spec).check()
    assert run.log(0) == "0 of 1: a b $HOME\n"
    run = run_job({**spec, "processes": 2}).check(1)
    failed = run.results()[1]
    assert failed["status"] == "failed"
    assert (failed["error"]["type"], failed["error"]["exit_code"]) == ("ExitCode", 1)
