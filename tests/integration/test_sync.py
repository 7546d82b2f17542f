"""mprun.counter, lock, barrier, queue and dict: values, errors, interrupts, and storms of kills."""

from __future__ import annotations

import ast
import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import harness
from harness import MPRUN_PYTHON, Run, RunCommand, Running, StartCommand

STORM = Path(__file__).parent / "sync_programs" / "storm.py"
# Only a wait that never ends lets a test take so long.
LONGEST = 120

StartPython = Callable[[str], Running]
RunPython = Callable[[str], Run]


@pytest.fixture(name="start_python")
def python_starter(start_plain: StartCommand, mprun: Path, tmp_path: Path) -> StartPython:
    """start_python(source) -> Running: a Python program that has the package, without mprun."""

    def start(source: str) -> Running:
        (tmp_path / "program.py").write_text(source, encoding="utf-8")
        package = mprun.parent.parent / "lib" / "mprun" / "python"
        return start_plain(MPRUN_PYTHON, "program.py", env={"PYTHONPATH": str(package)})

    return start


@pytest.fixture(name="run_python")
def python_runner(start_python: StartPython) -> RunPython:
    """run_python(source) -> Run: the same, to its end."""
    return lambda source: start_python(source).wait(LONGEST)


# --- killed while using it ---------------------------------------------------------------------


def test_a_storm_of_kills_below_mprun(run_mprun: RunCommand) -> None:
    """Nothing is lost except what the dead processes held, no process waits for them, and they are named."""
    run = run_mprun(
        "--python", MPRUN_PYTHON, "-n", "1", "--output", "run", STORM, "120", "1", timeout=LONGEST
    ).check()
    words = run.log(0).split()
    assert words[:2] == ["120", "killed,"]
    found = run.stderr.count('while it held the lock "both"; the next one who asks gets it')
    assert 0 < found <= 120


def test_a_storm_of_kills_without_mprun(
    start_plain: StartCommand, mprun: Path, tmp_path: Path
) -> None:
    package = mprun.parent.parent / "lib" / "mprun" / "python"
    run = start_plain(MPRUN_PYTHON, STORM, "60", "2", env={"PYTHONPATH": str(package)})
    assert run.wait(LONGEST).check().stdout.startswith("60 killed, ")


HALF_DONE = """
import ctypes
import mmap
import os
import struct
import time

import mprun

SYNC = os.open(os.environ["MPRUN_SYNC"], os.O_RDWR)
MEMORY = mmap.mmap(SYNC, 0)
LIBC = ctypes.CDLL(None)
# What follows the lock of a barrier, queue or dict (struct mprun_sync_lock in core/sync/sync.h).
FIELDS = 104


def die_half_done(name, fields):
    '''A child takes the lock, leaves the fields as a process killed there would, and ends.'''
    child = os.fork()
    if child == 0:
        at = MEMORY.find(name.encode() + b"\\0")
        (body,) = struct.unpack_from("=Q", MEMORY, at - 8)
        lock = ctypes.c_char.from_buffer(MEMORY, body)
        assert LIBC.pthread_mutex_lock(ctypes.byref(lock)) == 0
        for index, value in fields.items():
            struct.pack_into("=Q", MEMORY, body + FIELDS + 8 * index, value)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def run(_):
    queue, shared = mprun.queue("a queue"), mprun.dict("a dict")
    for number in range(3):
        queue.put(number)
        shared[number] = number
    found = []
    die_half_done("a queue", {1: 0, 2: 99})  # last, count: an item was linked, and not counted yet
    queue.put(3)
    found.append([queue.qsize(), [queue.get() for _ in range(4)], queue.qsize()])
    die_half_done("a queue", {2: 7})  # taken, and still counted
    queue.put(4)
    found.append([queue.qsize(), queue.get()])
    die_half_done("a dict", {1: 99, 2: 0})  # count, used
    for number in range(3, 40):
        shared[number] = number
    found.append([len(shared), sum(shared.values()), shared.keys() == list(range(40))])
    return found


def is_asleep(pid):
    with open(f"/proc/{pid}/syscall") as file:
        return file.read().startswith("202 ")


def forget_to_wake(_):
    barrier = mprun.barrier("the barrier", 2)
    waits = os.fork()
    if waits == 0:
        os._exit(10 + barrier.wait())
    while barrier.n_waiting == 0 or not is_asleep(waits):  # each such loop: there is no event for it
        time.sleep(0.001)
    child = os.fork()
    if child == 0:  # ends the generation, as the second party does, and dies before it wakes the first
        at = MEMORY.find(b"the barrier\\0")
        (body,) = struct.unpack_from("=Q", MEMORY, at - 8)
        (generation,) = struct.unpack_from("=I", MEMORY, body + FIELDS + 8)
        struct.pack_into("=I", MEMORY, body + FIELDS + 8, generation + 1)
        os._exit(0)
    os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(os.waitpid(waits, 0)[1])
"""


def test_counts_are_right_after_a_death_in_an_update(run_job: RunCommand) -> None:
    job = {"script": "job.py:run", "inputs": {"range": 1}}
    run = run_job(job, scripts={"job.py": HALF_DONE}, timeout=LONGEST).check()
    assert run.values() == [[[4, [0, 1, 2, 3], 0], [1, 4], [40, 780, True]]]


def test_a_sleeper_that_a_dead_process_should_wake_is_woken(run_job: RunCommand) -> None:
    job = {"script": "job.py:forget_to_wake", "inputs": {"range": 1}, "limits": {"job_seconds": 60}}
    run = run_job(job, scripts={"job.py": HALF_DONE}, timeout=LONGEST).check()
    assert run.values() == [10]
    assert run.hangs() == []


SLEEPERS = """
import os
import time

import mprun


def asleep(work, name):
    '''A process that waits in work(), and ends when three have come out of it: an end wakes all.'''
    done = mprun.counter(name)
    pid = os.fork()
    if pid == 0:
        work()
        done.add()
        while done.value < 3:
            time.sleep(0.001)
        os._exit(0)
    while True:
        with open(f"/proc/{pid}/syscall") as file:
            if file.read().startswith("202 "):
                return pid
        time.sleep(0.001)


def run(_):
    jobs, full = mprun.queue("jobs"), mprun.queue("full", 2)
    sleepers = [asleep(jobs.get, "got") for _ in range(3)]
    for number in range(3):
        jobs.put(number)
    for pid in sleepers:
        os.waitpid(pid, 0)
    full.put(0), full.put(0)
    sleepers = [asleep(lambda: full.put(1), "put") for _ in range(3)]
    taken = [full.get() for _ in range(2)]
    taken += [full.get() for _ in range(3)]
    for pid in sleepers:
        os.waitpid(pid, 0)
    held = mprun.lock("a lock")
    held.acquire()
    sleepers = [asleep(lambda: held.acquire() and held.release(), "held") for _ in range(3)]
    held.release()
    for pid in sleepers:
        os.waitpid(pid, 0)
    return [jobs.qsize(), taken]
"""


def test_every_sleeper_that_can_go_on_is_woken(run_job: RunCommand) -> None:
    job = {"script": "job.py:run", "inputs": {"range": 1}, "limits": {"job_seconds": 60}}
    run = run_job(job, scripts={"job.py": SLEEPERS}, timeout=LONGEST).check()
    assert run.values() == [[0, [0, 0, 1, 1, 1]]]
    assert run.hangs() == []


# --- after `mprun --` --------------------------------------------------------------------------

PROGRAM = """
import os
import signal
import mprun

arrival = mprun.barrier().wait()
dead = None
if mprun.rank() == 1:
    child = os.fork()
    if child == 0:
        mprun.lock("log").acquire()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    with mprun.lock("log") as log:
        dead = log.dead_holder == f"rank 1 (pid {child})"
mprun.queue("arrivals").put((mprun.rank(), arrival, dead))
mprun.barrier().wait()
if mprun.rank() == 0:
    print(sorted(mprun.queue("arrivals").get() for _ in range(2)), flush=True)
mprun.barrier().wait()
mprun.queue("arrivals").get()  # stuck
"""


def test_copies_of_a_program_share_it_and_are_watched(
    run_mprun: RunCommand, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    options = ("-n", "2", "--on-hang", "kill", "--hang-report", "hang.json")
    run = run_mprun(*options, "--", MPRUN_PYTHON, "program.py", timeout=LONGEST).check(124)
    (_, arrival, dead), (_, other, named) = ast.literal_eval(run.stdout)
    assert sorted([arrival, other]) == [0, 1]
    assert (dead, named) == (None, True)
    assert 'ended while it held the lock "log"; the next one who asks gets it' in run.stderr
    hang = json.loads((tmp_path / "hang.json").read_text(encoding="utf-8"))
    # Nothing that the dead child held is to blame.
    assert (hang["verdict"], hang["cause"]["id"]) == ("deadlock", "never-notified")
    assert hang["join"]["call"] == "mprun.queue.get"
    assert "# stuck" in PROGRAM.splitlines()[hang["join"]["line"] - 1]


# --- values ------------------------------------------------------------------------------------

ROUND_TRIP = """
import math
import numpy
import torch
import mprun

queue, shared = mprun.queue("q"), mprun.dict("d")


def there_and_back(value):
    queue.put(value)
    shared["value"] = value
    other = shared["value"]
    value = queue.get()
    assert repr(other) == repr(value), (other, value)
    return value


PLAIN = [
    None, True, False, 0, -1, 2**70, 1.5, math.inf, -0.0, "", "text \\u00e9 \\U0001f600 \\ud800 \\0", b"", b"\\0\\xff" * 100,
    [], (), {}, [1, (2, [3, (4,)])], ((),), {"a": (1, b"x")}, {1: "one", "1": "text", None: 0, (1, "x"): 2.5, True: 1},
    {"t": 1}, {"a": [0, "numpy", "<f8", [1]]}, {"b": [1, 2]}, [{"k": []}], "x" * 1000000,
]
for value in PLAIN:
    back = there_and_back(value)
    assert type(back) is type(value) and back == value, value
    assert repr(back) == repr(value), value
assert math.isnan(there_and_back(math.nan))
assert type(there_and_back(numpy.int64(3))) is int

ARRAYS = [
    numpy.arange(12.0).reshape(3, 4), numpy.zeros((0, 3)), numpy.array(7), numpy.array(["a", "bcd"]),
    numpy.array([b"xy"]), numpy.array(["2024-01-01", "NaT"], "M8[D]"), numpy.ones(5, "f2"), numpy.ones(2, "c16"),
    numpy.arange(20)[::-2], numpy.asfortranarray(numpy.arange(6).reshape(2, 3)), numpy.array([True, False]),
    numpy.random.rand(1000, 131),
]
for value in ARRAYS:
    back = there_and_back(value)
    assert type(back) is numpy.ndarray and back.dtype == value.dtype and back.shape == value.shape
    assert back.tobytes() == value.tobytes()
    back.reshape(-1)[:1] = back.reshape(-1)[:1]  # it may be written to
assert there_and_back(numpy.arange(3, dtype=">i4")).tolist() == [0, 1, 2]

TENSORS = [
    torch.arange(6).reshape(2, 3), torch.ones(3, dtype=torch.bfloat16), torch.tensor(2.5), torch.zeros(0, 4),
    torch.ones(2, 2, dtype=torch.float16).t(), torch.tensor([1 + 2j]), torch.tensor([True]),
    torch.ones(3, requires_grad=True),
]
for value in TENSORS:
    back = there_and_back(value)
    assert type(back) is torch.Tensor and back.dtype == value.dtype and back.shape == value.shape
    assert torch.equal(back, value.detach())
mixed = there_and_back({"x": [numpy.ones(3), (torch.ones(2), b"12", numpy.float32(0.5))], 5: torch.zeros(1)})
assert mixed["x"][0].tolist() == [1, 1, 1] and mixed["x"][1][0].tolist() == [1, 1] and mixed["x"][1][1:] == (b"12", 0.5)
assert mixed[5].tolist() == [0]
print("all came back")
"""


def test_values_are_returned_unchanged(run_python: RunPython) -> None:
    assert run_python(ROUND_TRIP).check().stdout == "all came back\n"


# What is refused: the call, the type of the exception, and a part of what it says.
REFUSED = [
    ("mprun.lock('c')", "TypeError", '"c" is a counter of this job already, so it cannot be a lock'),
    ("mprun.counter('')", "ValueError", "1 to 111 bytes"),
    ("mprun.counter('x' * 112)", "ValueError", "1 to 111 bytes"),
    ("mprun.counter('a\\0b')", "ValueError", "without NUL"),
    ("mprun.counter('c').add(2**63)", "OverflowError", "64 bits"),
    ("mprun.counter('most').add()", "OverflowError", "the counter 'most' is at 9223372036854775807"),
    ("mprun.counter('c').add('1')", "TypeError", "integer"),
    ("held.acquire()", "RuntimeError", "this thread holds the lock 'held' already"),
    ("mprun.lock('free').release()", "RuntimeError", "does not hold the lock 'free'"),
    ("mprun.lock('free').acquire(timeout=-2)", "ValueError", "not less than 0"),
    ("mprun.barrier('two', 3)", "ValueError", "was made for 2 parties, not for 3"),
    ("mprun.barrier('none', 0)", "ValueError", "1 to 4096 parties, not 0"),
    ("mprun.barrier('two', 2).wait(0.01)", "BrokenBarrierError", ""),
    ("mprun.queue('q', 5)", "ValueError", "was made with maxsize=1: it cannot have maxsize=5"),
    ("mprun.queue('q', 1).put_nowait(2)", "Full", ""),
    ("mprun.queue('q', 1).put(2, timeout=0.01)", "Full", ""),
    ("mprun.queue('empty').get_nowait()", "Empty", ""),
    ("mprun.queue('empty').get(timeout=0.01)", "Empty", ""),
    ("mprun.queue('empty').put({1, 2})", "TypeError", "a set cannot be passed between processes"),
    ("mprun.queue('empty').put([object()])", "TypeError", "a object cannot be passed"),
    ("mprun.queue('empty').put(collections.OrderedDict())", "TypeError", "a plain dict: convert it"),
    ("mprun.queue('empty').put(circle)", "ValueError", "contains itself"),
    ("mprun.queue('empty').put(numpy.array([None]))", "TypeError", "dtype object"),
    ("mprun.queue('empty').put(numpy.zeros(300 << 20, 'u1'))", "MemoryError", "256 MiB"),
    ("mprun.dict('d')['x']", "KeyError", "'x'"),
    ("mprun.dict('d').pop(1)", "KeyError", "1"),
    ("mprun.dict('d').popitem()", "KeyError", "empty"),
    ("mprun.dict('d').__delitem__(1)", "KeyError", "1"),
    ("mprun.dict('d').__setitem__([1], 2)", "TypeError", "a list cannot be a key"),
    ("mprun.dict('d').__setitem__(float('nan'), 2)", "ValueError", "NaN"),
    ("[mprun.counter(f'name {i}') for i in range(1100)]", "MemoryError", "1024 named"),
]


def test_wrong_use_is_refused_with_the_reason(run_python: RunPython) -> None:
    program = (
        "import collections, sys, numpy, mprun\n"
        "mprun.counter('c'); mprun.counter('most').set(2**63 - 1); mprun.barrier('two', 2)\n"
        "held = mprun.lock('held'); held.acquire(); mprun.queue('q', 1).put(1)\n"
        "circle = []; circle.append(circle)\n"
        f"for call, kind, text in {REFUSED!r}:\n"
        "    try:\n"
        "        eval(call)\n"
        "    except Exception as error:\n"
        "        if type(error).__name__ != kind or text not in str(error):\n"
        "            print(f'{call}: {type(error).__name__}: {error}')\n"
        "    else:\n"
        "        print(f'{call}: no exception')\n"
    )
    assert run_python(program).check().stdout == ""


DICT = """
import collections.abc
import mprun

shared = mprun.dict("d")
assert isinstance(shared, collections.abc.MutableMapping)
plain = {}
for number in range(3000):  # it grows, and its places are used again
    key = number * 7919 % 501
    if number % 3 == 2:
        assert shared.pop(key, None) == plain.pop(key, None)
    else:
        shared[key] = plain[key] = number
    assert len(shared) == len(plain)
assert shared.items() == list(plain.items()) and list(shared) == list(plain)
assert shared == plain and shared.copy() == plain and shared.values() == list(plain.values())
assert 1 not in shared or shared[1] == plain[1]
shared.clear()
assert not shared and shared.items() == []
shared |= {"a": 1}
shared.update([("b", 2)], c=3)
assert shared.keys() == ["a", "b", "c"] and shared.popitem() == ("c", 3)
assert shared.setdefault("a", 9) == 1 and shared.setdefault("z", 9) == 9 and shared["z"] == 9
shared[1] = "int"
shared["1"] = "text"
assert (shared[True], shared[1.0], shared["1"]) == ("int", "int", "text")
shared[("x", (1, None))] = 0
assert ("x", (True, None)) in shared and shared.keys()[-1] == ("x", (1, None))
seen = [key for key in shared if shared.pop(key) or True]  # over what was there
assert len(seen) == 6 and len(shared) == 0
for _ in range(100):  # what is freed is used again: more than fits at once
    shared["large"] = b"x" * 10_000_000
print("as a dict does")
"""


def test_a_dict_does_what_a_dict_does(run_python: RunPython) -> None:
    assert run_python(DICT).check().stdout == "as a dict does\n"


def test_importing_the_package_stays_cheap(run_python: RunPython) -> None:
    program = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "import mprun\n"
        "new = set(sys.modules) - before\n"
        "print(sorted(new & {'mprun.sync', 'json', 'struct', 'queue', 'threading', 'numpy'}))\n"
        "mprun.queue('q').put((1, 'x'))\n"
        "print([name for name in ('numpy', 'torch', 'pickle') if name in sys.modules])\n"
    )
    assert run_python(program).check().stdout == "[]\n[]\n"


# --- interrupts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wait",
    [
        "mprun.lock('held').acquire()",
        "mprun.queue('q').get()",
        "mprun.queue('full', 1).put(2)",
        "mprun.barrier('b', 2).wait()",
    ],
)
def test_ctrl_c_ends_a_wait(start_python: StartPython, wait: str) -> None:
    """The other process goes on; what it holds is still its own."""
    running = start_python(
        "import os, signal, sys, time, mprun\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "mprun.queue('full', 1).put(1)\n"
        "ready = mprun.counter('ready')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    mprun.lock('held').acquire()\n"
        "    ready.set(1)\n"
        "    signal.pause()\n"
        "while not ready.value:\n"
        "    time.sleep(0.001)\n"
        "try:\n"
        f"    {wait}\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', mprun.barrier('b', 2).n_waiting, mprun.lock('held').locked())\n"
        "os.kill(child, signal.SIGKILL)\n"
        "os.wait()\n"
        "print(mprun.lock('held').acquire(timeout=60))\n"
    )
    futex = 202
    harness.wait_until(
        lambda: Path(f"/proc/{running.pid}/syscall").read_text(encoding="ascii").split()[0]
        == str(futex),
        what="it to wait",
    )
    running.send_signal(signal.SIGINT)
    assert running.wait(LONGEST).check().stdout == "interrupted 0 True\nTrue\n"


# --- where it lies -----------------------------------------------------------------------------


def test_the_memory_can_be_neither_shrunk_nor_mistaken(run_job: RunCommand) -> None:
    script = (
        "import os, mprun\n\n"
        "def look(_):\n"
        "    mprun.counter('c').add()\n"
        "    path = os.environ['MPRUN_SYNC']\n"
        "    found = []\n"
        "    try:\n"
        "        os.truncate(path, 0)\n"
        "    except OSError as error:\n"
        "        found.append(type(error).__name__)\n"
        "    for other in ('/dev/null', '/nowhere', path.rpartition('/')[0] + '/0'):\n"
        "        child = os.fork()\n"
        "        if child == 0:\n"
        "            os.execve('/proc/self/exe', ['python', '-c', PROGRAM],\n"
        "                      {**os.environ, 'MPRUN_SYNC': other})\n"
        "        found.append(os.waitpid(child, 0)[1] >> 8)\n"
        "    return found\n\n"
        "PROGRAM = f'''\n"
        "import sys\n"
        "sys.path.append({os.path.dirname(os.path.dirname(mprun.__file__))!r})\n"
        "import mprun\n"
        "try:\n"
        "    mprun.counter(\"c\")\n"
        "except OSError as error:\n"
        "    sys.exit(7 if \"MPRUN_SYNC=\" in str(error) else 8)\n"
        "'''\n"
    )
    job = {"script": "job.py:look", "inputs": {"range": 1}}
    run = run_job(job, scripts={"job.py": script}).check()
    assert run.values() == [["PermissionError", 7, 7, 7]]


def test_objects_can_be_passed_to_processes_that_are_spawned(run_job: RunCommand) -> None:
    script = (
        "import multiprocessing, mprun\n\n"
        "def child(counter, queue, shared, barrier, lock):\n"
        "    with lock:\n"
        "        counter.add(), queue.put(queue.maxsize), shared.update(x=barrier.parties)\n\n"
        "def start(_):\n"
        "    objects = (mprun.counter('c'), mprun.queue('q', 3), mprun.dict('d'),\n"
        "               mprun.barrier('b', 5), mprun.lock('l'))\n"
        "    process = multiprocessing.get_context('spawn').Process(target=child, args=objects)\n"
        "    process.start()\n"
        "    process.join()\n"
        "    return [objects[0].value, objects[1].get(), objects[2]['x']]\n"
    )
    job = {"script": "job.py:start", "inputs": {"range": 1}}
    assert run_job(job, scripts={"job.py": script}).check().values() == [[1, 3, 5]]


# Overwrites the lock of the named object (the memory's own: ""), as a stray write of any process could. A name lies
# 16 bytes after its entry begins, the body's offset 8; a lock is a pthread_mutex_t, whose kind lies 16 bytes in.
OVERWRITTEN = """
import ctypes, signal, struct
import mprun

signal.alarm(60)  # for a wait that nothing ends
mprun.counter("first")  # makes the memory, of 256 MiB
maps = [line.split() for line in open("/proc/self/maps")]
spans = [[int(bound, 16) for bound in line[0].split("-")] for line in maps if line[1] == "rw-s"]
start, = [low for low, high in spans if high - low == 256 << 20]
memory = (ctypes.c_char * (1 << 20)).from_address(start)

def overwrite(name, after=0):
    lock = 16
    if name:
        lock, = struct.unpack_from("Q", memory, memory.raw.find(name.encode() + b"\\0") - 8)
    struct.pack_into("I", memory, lock + after + 16, 0x7f)

def refused(*calls):
    for call in calls:
        try:
            print(call.__name__, call())
        except RuntimeError as error:
            assert "was overwritten by one of them" in str(error), error

lock, queue, shared = mprun.lock("a lock"), mprun.queue("a queue"), mprun.dict("a dict")
barrier, seats = mprun.barrier("a barrier", 2), mprun.barrier("a second", 1)
queue.put(1)
shared["key"] = 1
for name in ("a lock", "a queue", "a dict", "a barrier"):
    overwrite(name)
for seat in range(4):
    overwrite("a second", LOCK_AND_WORDS + seat * SEAT)
refused(lambda: queue.put(2), queue.get, queue.get_nowait)
refused(lambda: shared["key"], lambda: "key" in shared, lambda: shared.update(key=2), lambda: shared.pop("key"),
        lambda: shared.setdefault("key", 3), shared.items, shared.clear)
refused(lock.acquire, lock.__enter__)
refused(barrier.wait, barrier.abort, barrier.reset, lambda: barrier.n_waiting, seats.wait)
assert (queue.qsize(), len(shared)) == (1, 1)  # nothing was changed

fresh = mprun.queue("another queue")
overwrite("")
refused(lambda: fresh.put(1), lambda: mprun.lock("another lock"), lambda: mprun.dict("another dict"))
assert fresh.qsize() == 0
print("refused")
""".replace("LOCK_AND_WORDS", "104 + 16").replace("SEAT", "56")


def test_what_was_overwritten_is_not_used_without_its_lock(run_python: RunPython) -> None:
    assert run_python(OVERWRITTEN).check().stdout == "refused\n"
