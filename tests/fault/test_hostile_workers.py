"""Workers, ranks and hosts that lie on their channels: their own tasks fail, nothing else is harmed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from harness import Run, RunCommand, StartCommand, wait_until

TASKS = 12
HOSTILE = 3

# For task scripts: the descriptors that connect a worker with mprun, and frames as protocol.h defines them.
CHANNELS = '''
import fcntl
import os
import socket
import stat
import struct

HELLO, READY, RESULT, START_FAILED, FORKED, EXITED = range(10, 16)


def find(is_wanted):
    """Those of our descriptors that are wanted, from 3 on."""
    found = []
    for fd in range(3, 1024):
        try:
            if is_wanted(fd):
                found.append(fd)
        except OSError:
            pass
    return found


def results():
    """The pipe to mprun."""
    return find(lambda fd: stat.S_ISFIFO(os.fstat(fd).st_mode) and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_WRONLY)[0]


def channels():
    """The sockets to mprun."""
    return find(lambda fd: stat.S_ISSOCK(os.fstat(fd).st_mode))


def frame(kind, payload=b"", size=None):
    return struct.pack("=IHH", len(payload) if size is None else size, 0x6D72, kind) + payload


def result(position, text, tensors=0):
    return frame(RESULT, struct.pack("=IIqqII", position, 0, 0, 0, tensors, 0) + text)


def send(data, fd=None):
    fd = results() if fd is None else fd
    data = memoryview(data)
    os.set_blocking(fd, True)
    while data:
        data = data[os.write(fd, data):]
'''

# What task 3 does, and how mprun responds: it ends the worker, or does not even notice.
ENDED, UNNOTICED = "ended", "unnoticed"
LIES: dict[str, tuple[str, str]] = {
    "an old result again": ("send(result(0, b'666'))", ENDED),
    "a result of the future": ("send(result(4000, b'666'))", ENDED),
    "a frame without a result": ("send(frame(RESULT))", ENDED),
    "a result that is cut": ("send(frame(RESULT, b'x' * 20))", ENDED),
    "that it could not start": ("send(frame(START_FAILED, b'{\"message\": \"no\"}'))", ENDED),
    "more tensors than bytes": ("send(result(0, b'1', tensors=2**32 - 1))", ENDED),
    "too large a frame": ("send(frame(RESULT, size=2**30 + 1))", ENDED),
    "a frame that never ends": ("send(frame(RESULT, size=2**30)); time.sleep(600)", "limit"),
    "unknown frames": ("pipe = results(); [send(frame(99, b'x' * 999), pipe) for _ in range(5000)]", UNNOTICED),
    "frames of a host": ("send(frame(FORKED, b'{\"pid\": 1, \"slot\": 0}') + frame(EXITED, b'{\"pid\": \"x\"}'))", UNNOTICED),
    "hello and ready again": ("send(frame(HELLO) + frame(READY) * 100)", UNNOTICED),
    "bytes": ("send(bytes(range(256)) * 9)", ENDED),
}
SCRIPT = """
import sys
import time

from channels import *


def run(number):
    if number == 3:
        {lie}
    return number
"""


def job(start_method: str = "fork", **more: Any) -> dict[str, Any]:
    limits = {"task_seconds": 3, "grace_seconds": 1}
    spec = {"script": "job.py:run", "start_method": start_method, "processes": 2, "inputs": {"range": TASKS}}
    return {**spec, "chunk_size": 1, "retries": 0, "limits": limits, **more}


def check_others(run: Run) -> dict[str, Any]:
    """All results are there once, whole and true but for the hostile task's; returns that one."""
    lines = (run.run_dir / "results.jsonl").read_text(encoding="utf-8").splitlines()
    results = {result["task"]: result for result in map(json.loads, lines)}
    assert len(lines) == len(results) == TASKS, run
    for number, result in results.items():
        if number != HOSTILE:
            assert (result["status"], result.get("value")) == ("ok", number), f"{result}\n{run}"
    return results[HOSTILE]


@pytest.mark.parametrize("lie", list(LIES))
def test_lies_on_the_result_pipe(run_job: RunCommand, lie: str) -> None:
    code, answer = LIES[lie]
    scripts = {"job.py": SCRIPT.format(lie=code), "channels.py": CHANNELS}
    run = run_job(job(), scripts=scripts)
    hostile = check_others(run)
    if answer == UNNOTICED:
        run.check()
        assert hostile["value"] == HOSTILE
        return
    run.check(1)
    assert hostile["status"] == "failed"
    reason = "longer than limits.task_seconds" if answer == "limit" else "something that is no result"
    assert re.search(reason, hostile["error"]["message"]), hostile


FORGED = ['"x"}\n{"task": 0, "status": "ok"', "not JSON", '"\xff"', "[" * 20000, ""]


@pytest.mark.parametrize("text", FORGED, ids=["two lines", "words", "no UTF-8", "deep", "nothing"])
@pytest.mark.parametrize("kind", ["worker", "rank"])
def test_a_result_that_is_no_json(run_job: RunCommand, kind: str, text: str) -> None:
    """It fails, whichever process sends it: each line of results.jsonl stays one whole value, and none is made up."""
    forged = f"send(result(position, {text.encode('latin-1')!r}))"
    if kind == "rank":
        check_rank(run_job, f"position = 0\n{forged}", WROTE_NO_RESULT)
        return
    # With one worker and chunks of one task the third has position 3.
    script = SCRIPT.format(lie=f"position = 3; {forged}; time.sleep(600)")
    run = run_job(job(processes=1), scripts={"job.py": script, "channels.py": CHANNELS}).check(1)
    assert check_others(run)["status"] == "failed"


WROTE_NO_RESULT = r"rank 0 ended with .* after it wrote something that is no result to mprun's pipe"
FORKED_WRITER = """
if os.fork() == 0:
    os.setsid()
    send(frame(RESULT, size=1000))
    os._exit(0)
os.wait()
"""
# What a rank, or a process that has inherited its pipe, does before it ends with 0.
RANK_LIES = {
    "bytes": "send(bytes(range(256)) * 9)",
    "bytes, and it goes on": "send(bytes(range(256)) * 9); time.sleep(600)",
    "bytes after a result": "mprun.result(1); send(bytes(999))",
    "half a header": "send(frame(RESULT)[:3])",
    "half a frame": "send(frame(RESULT, b'x' * 100, size=2**20))",
    "half a frame after a result": "mprun.result(1); send(frame(RESULT, size=2**20))",
    "half a frame, and the pipe is closed": "send(frame(RESULT, size=9)); os.close(results()); time.sleep(0.2)",
    "half a frame by a process that it forked": FORKED_WRITER,
    "too large a frame": "send(frame(RESULT, size=2**30 + 1))",
    "a frame without a result": "send(frame(RESULT))",
    "a result that is cut": "mprun.result(1); send(frame(RESULT, b'x' * 20))",
    "more tensors than bytes": "send(result(0, b'1', tensors=2**32 - 1))",
    "that it could not start": "send(frame(START_FAILED, b'{\"message\": \"no\"}'))",
}


def check_rank(run_job: RunCommand, code: str, reason: str, start_method: str = "spawn") -> None:
    """The job of one rank that does this fails, and reports why."""
    script = f"import mprun\nimport os\nimport time\nfrom channels import *\n{code}\n"
    spec = {"script": "job.py", "processes": 1, "start_method": start_method}
    run = run_job(spec, scripts={"job.py": script, "channels.py": CHANNELS}, timeout=40).check(1)
    [result] = run.results()
    assert (result["status"], result.get("value")) == ("failed", None), run
    assert re.fullmatch(reason, result["error"]["message"]), result
    [line] = (run.run_dir / "joblog.tsv").read_text().splitlines()[1:]
    assert line.split("\t")[6:8] != ["0", "0"], line


@pytest.mark.parametrize("lie", list(RANK_LIES))
def test_lies_of_a_rank(run_job: RunCommand, start_method: str, lie: str) -> None:
    check_rank(run_job, RANK_LIES[lie], WROTE_NO_RESULT, start_method)


def test_a_rank_that_dies_within_a_frame(run_job: RunCommand) -> None:
    """The half frame results from its death, and not the other way round."""
    code = "send(frame(RESULT, size=2**20)); os.kill(os.getpid(), 9)"
    check_rank(run_job, code, r"rank 0 ended with signal 9 \(Killed\)")


def test_a_rank_may_close_its_pipe(run_job: RunCommand, start_method: str) -> None:
    """Daemons close all descriptors that they have not opened; nothing was lost."""
    script = "import mprun\nimport os\n\nmprun.result(1)\nos.closerange(3, 256)\n"
    spec = {"script": "job.py", "processes": 1, "start_method": start_method}
    assert run_job(spec, scripts={"job.py": script}).check().values() == [1]


SIGNALLED = """
import signal

import mprun
from channels import *

os.set_blocking(results(), True)  # as any process that shares the pipe may do: writes are interrupted then
going_on = True


def on_alarm(*_):
    if going_on:
        mprun.result("y" * 200_000)
        signal.setitimer(signal.ITIMER_REAL, 0.001)  # not before: a slow machine would nest them without end


signal.signal(signal.SIGALRM, on_alarm)
signal.setitimer(signal.ITIMER_REAL, 0.001)
for _ in range(50):
    mprun.result("x" * 4_000_000)
going_on = False
mprun.result("the last one")
"""


def test_results_of_a_signal_handler(run_job: RunCommand) -> None:
    """It runs between two frames, and neither waits for the other."""
    spec = {"script": "job.py", "processes": 1, "limits": {"job_seconds": 60}}
    run = run_job(spec, scripts={"job.py": SIGNALLED, "channels.py": CHANNELS}, timeout=90).check()
    assert run.values() == ["the last one"]


FLOOD = """
import os
import time

from channels import *


def run(number):
    if number == 3:
        block = frame(99, b"x" * 60000)
        end = time.monotonic() + 600
        pipe = results()
        os.set_blocking(pipe, True)
        if {orphan} and os.fork() == 0:
            os.setsid()
        elif {orphan}:
            time.sleep(0.2)
            os._exit(9)
        while time.monotonic() < end:
            os.write(pipe, block)
    return number


if __name__ == "__main__":
    run(3)
"""


def peak_memory(pid: int) -> int:
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) * 1024


@pytest.mark.parametrize("orphan", [False, True], ids=["by the worker", "by a process with its pipe"])
def test_flood(start_job: StartCommand, orphan: bool) -> None:
    """As much and for as long as it can: mprun works on, and holds none of it."""
    scripts = {"job.py": FLOOD.format(orphan=orphan), "channels.py": CHANNELS}
    running = start_job(job(), scripts=scripts)
    lines = running.run_dir / "results.jsonl"
    wait_until(lambda: lines.exists() and lines.read_text().count("\n") >= TASKS - 1, 30, "the other tasks")
    peak = max(peak_memory(pid) for pid in (running.pid, running.children()[0].pid))
    run = running.wait(60).check(1)
    assert check_others(run)["status"] == "failed"
    assert peak < 100 << 20


def test_flood_by_a_rank(run_job: RunCommand) -> None:
    """A limit still ends it: mprun is not kept busy by reading."""
    spec = {"script": "job.py", "processes": 2, "limits": {"job_seconds": 3, "grace_seconds": 1}}
    scripts = {"job.py": FLOOD.format(orphan=False), "channels.py": CHANNELS}
    run_job(spec, scripts=scripts, timeout=40).check(124)


@pytest.mark.parametrize("end", ["results", "channel"])
def test_half_closed(run_job: RunCommand, start_method: str, end: str) -> None:
    """One of its two channels is closed, the other is open."""
    closes = {"results": "os.close(results())", "channel": "[os.close(fd) for fd in channels()]"}
    lie = f"{closes[end]}; time.sleep(600 if {end == 'results'} else 0)"
    scripts = {"job.py": SCRIPT.format(lie=lie), "channels.py": CHANNELS}
    run = run_job(job(start_method, limits={}), scripts=scripts, timeout=40)
    hostile = check_others(run)
    if end == "results":
        run.check(1)
        assert "closed the descriptors that connect it with mprun" in hostile["error"]["message"]
    else:  # its result still arrives, and only the next task would not reach it
        run.check()
        assert hostile["value"] == HOSTILE


# What a host sends, and the exit code of the job: reports about unknown processes are ignored.
HOST_LIES = {
    "a worker of another job": (
        'frame(FORKED, b\'{"pid": 1, "slot": 0}\') + frame(FORKED, b\'{"pid": 1, "slot": 99}\')',
        0,
    ),
    "wrong types": ('frame(FORKED, b\'{"pid": "x", "slot": []}\') + frame(EXITED, b\'{"pid": {}}\')', 0),
    "ends of unknown processes": ('frame(EXITED, b\'{"pid": 1, "signal": 9}\')', 0),
    "no JSON": ("frame(FORKED, b'x') + frame(EXITED) + frame(FORKED, b'[1]')", 0),
    "a failure without words": ('frame(START_FAILED, b\'{"message": 3, "traceback": "\\\\n", "stage": {}}\')', 3),
    "nonsense": ("bytes(999)", 3),
}


@pytest.mark.parametrize("lie", list(HOST_LIES))
def test_lies_of_a_host(run_job: RunCommand, lie: str) -> None:
    """The script writes to the host's channel while it is loaded: the job runs, or ends with 3 and a reason."""
    said, code = HOST_LIES[lie]
    script = f"from channels import *\n\nsend({said}, channels()[0])\n\n\ndef run(number):\n    return number\n"
    run = run_job(job(), scripts={"job.py": script, "channels.py": CHANNELS}, timeout=40).check(code)
    assert "internal fault" not in run.stderr
    if code == 0:
        assert run.values() == list(range(TASKS))
    else:
        assert "cannot launch the job" in run.stderr
