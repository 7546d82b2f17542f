"""`binding`: which processors workers, ranks and commands run on, and what is said of it."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import RunCommand

START_METHODS = ["fork", "spawn", "forkserver"]
HERE = sorted(os.sched_getaffinity(0))
NODES = Path("/sys/devices/system/node")
HAS_NODES = (NODES / "has_cpu").exists() and (NODES / "has_cpu").read_text().strip() != "0"
SERVER = {"HWLOC_SYNTHETIC": "pack:2 [numa] core:4 pu:2"}  # two packages, each a memory node; two threads a core

pytestmark = pytest.mark.skipif(len(HERE) < 2, reason="needs two processors")

SCRIPT = """
import os


def run(_):
    return [os.environ.get("MPRUN_CPUS"), sorted(os.sched_getaffinity(0))]
"""


def run_two(run_job: RunCommand, script: str, **fields: object) -> dict[int, Any]:
    """The value of each of two workers, which run a task each."""
    spec = {"script": "job.py:run", "inputs": {"range": 2}, "processes": 2, "chunk_size": 1, **fields}
    run = run_job(spec, scripts={"job.py": script}).check()
    return {line["worker"]: line["value"] for line in run.results()}


def values(run_job: RunCommand, **fields: object) -> dict[int, Any]:
    """What the tasks of each worker say; each task waits until both workers have one."""
    script = SCRIPT.replace("    return", "    import mprun\n\n    mprun.barrier('both', 2).wait()\n    return")
    return run_two(run_job, script, **fields)


@pytest.mark.parametrize("method", START_METHODS)
def test_workers_have_cores_of_their_own(run_job: RunCommand, method: str) -> None:
    """Under every start method, and their environment says which."""
    lists = [str(HERE[0]), str(HERE[1])]
    found = values(run_job, start_method=method, binding=lists)
    assert found == {slot: [lists[slot], [HERE[slot]]] for slot in (0, 1)}


def test_nothing_is_bound_unless_it_helps(run_job: RunCommand) -> None:
    """On a machine with one memory node, or where that is asked for."""
    for fields in ({"binding": "none"}, {"binding": "none" if HAS_NODES else "auto"}):
        assert values(run_job, **fields) == {slot: [None, HERE] for slot in (0, 1)}


def test_fewer_tasks_than_workers_have_more_threads_each(run_job: RunCommand) -> None:
    """Workers are placed again as many as there will be, each on one memory node."""
    script = 'import os\n\n\ndef run(_):\n    return os.environ["OMP_NUM_THREADS"]\n'
    spec = {"script": "job.py:run", "inputs": {"range": 1}, "processes": 4}
    beside = set(HERE)
    if HAS_NODES:
        beside &= set(processors((NODES / "node0/cpulist").read_text()))
    assert run_job(spec, scripts={"job.py": script}).check().values() == [str(len(beside))]


def test_commands_are_bound(run_job: RunCommand) -> None:
    """Before they are executed."""
    command = ["sh", "-c", "echo $MPRUN_CPUS; grep Cpus_allowed_list /proc/self/status"]
    spec = {"command": command, "inputs": {"range": 1}, "processes": 1, "binding": [str(HERE[1])]}
    (result,) = run_job(spec).check().results()
    assert result["value"]["stdout"].split() == [str(HERE[1]), "Cpus_allowed_list:", str(HERE[1])]


@pytest.mark.parametrize("script", ["rank.py", "rank.sh"])
def test_ranks_are_bound(run_job: RunCommand, tmp_path: Path, script: str) -> None:
    """Scripts and programs alike."""
    sources = {
        "rank.py": "import os\nopen(f'{os.environ[\"RANK\"]}.txt', 'w').write(str(sorted(os.sched_getaffinity(0))))\n",
        "rank.sh": "#!/bin/sh\necho [$(sed -n 's/Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)] > $RANK.txt\n",
    }
    spec = {"script": script, "processes": 2, "binding": [str(HERE[0]), str(HERE[1])]}
    (tmp_path / script).write_text(sources[script])
    (tmp_path / script).chmod(0o700)
    run_job(spec).check()
    assert [json.loads((tmp_path / f"{rank}.txt").read_text()) for rank in (0, 1)] == [[HERE[0]], [HERE[1]]]


OPENMP = """
import ctypes
import os

openmp = ctypes.CDLL(os.environ.get("OPENMP", "libgomp.so.1"))  # libomp has GOMP_parallel, too
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def masks():
    found = []
    openmp.GOMP_parallel(FUNCTION(lambda _: found.append(sorted(os.sched_getaffinity(0)))), None, 2, 0)
    return found


def run(_):
    import mprun

    mprun.barrier("both", 2).wait()
    return [sorted(os.sched_getaffinity(0)), *masks()]
"""


def has_libomp() -> bool:
    try:
        ctypes.CDLL("libomp.so.5")
    except OSError:
        return False
    return True


LIBOMP = "libomp.so.5"
needs_libomp = pytest.mark.skipif(not has_libomp(), reason="libomp is not installed")
USERS = [(method, "libgomp.so.1") for method in START_METHODS]
# A forked process that has used libomp leaves a file in /dev/shm, with mprun or without.
USERS.append(pytest.param("spawn", LIBOMP, marks=needs_libomp))


@pytest.mark.parametrize(("method", "library"), USERS)
def test_openmp_stays_within_the_binding(run_job: RunCommand, method: str, library: str) -> None:
    """Also where the host has used it before it forks."""
    job = {"binding": [str(HERE[0]), str(HERE[1])], "env": {"OPENMP": library}}
    found = run_two(run_job, OPENMP, setup="masks", start_method=method, **job)
    assert found == {slot: [[HERE[slot]]] * 3 for slot in (0, 1)}


@pytest.mark.parametrize(
    ("library", "variables"),
    [
        ("libgomp.so.1", {"OMP_PROC_BIND": "close"}),
        ("libgomp.so.1", {"OMP_PLACES": "cores"}),
        pytest.param(LIBOMP, {"OMP_PROC_BIND": "close"}, marks=needs_libomp),
        pytest.param(LIBOMP, {"KMP_AFFINITY": "granularity=thread,compact"}, marks=needs_libomp),
    ],
)
def test_openmp_pins_its_threads_within_the_binding(
    run_job: RunCommand, library: str, variables: dict[str, str]
) -> None:
    """Where the user asks for that, in workers that load it themselves."""
    both = {"binding": [f"{HERE[0]},{HERE[1]}"], "env": {"OPENMP": library, **variables}}
    for own, *threads in run_two(run_job, OPENMP, start_method="spawn", **both).values():
        assert own in (threads if library != LIBOMP else [HERE[:2]])  # which pins the first thread later
        assert sorted(threads) == [[HERE[0]], [HERE[1]]]


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_workers_are_not_where_openmp_has_pinned_their_host(run_job: RunCommand, method: str) -> None:
    """It is pinned to one processor when it loads a library with OMP_PROC_BIND set."""
    script = 'import ctypes\n\nctypes.CDLL("libgomp.so.1")\n' + SCRIPT
    spec = {"script": "job.py:run", "inputs": {"range": 2}, "processes": 2, "env": {"OMP_PROC_BIND": "close"}}
    spec["binding"] = "none"
    more = {"start_method": "forkserver", "preload": ["pinned"]} if method == "forkserver" else {}
    scripts = {"job.py": script if method == "fork" else SCRIPT, "pinned.py": script}
    run = run_job({**spec, **more}, scripts=scripts).check()
    assert run.values() == [[None, HERE]] * 2
    assert "OMP_PROC_BIND is set" in run.stderr


def check(run_mprun: RunCommand, tmp_path: Path, *options: str) -> harness.Run:
    """What `mprun check` says on the described server."""
    (tmp_path / "job.py").write_text(SCRIPT)
    (tmp_path / "job.json").write_text('{"version": 1, "script": "job.py:run", "inputs": {"range": 2}}')
    return run_mprun("check", *options, "job.json", cwd=tmp_path, env=SERVER)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-n", "2", "--binding", "core", "--threads-per-worker", "8"], "0-7, 8-15"),
        (["-n", "4", "--binding", "numa"], "0-7, 0-7, 8-15, 8-15"),
        (["-n", "1", "--binding", "socket"], "0-7"),
        (["-n", "2", "--threads-per-worker", "8"], "0-7, 8-15"),
        (["-n", "9", "--threads-per-worker", "1", "--binding", "none"], "none"),
        (["-n", "17", "--threads-per-worker", "1"], "none"),
        (["-n", "2", "--hyperthreads", "off", "--binding", "numa"], "0,2,4,6, 8,10,12,14"),
    ],
)
def test_it_is_shown_before_anything_runs(
    run_mprun: RunCommand, tmp_path: Path, options: list[str], expected: str
) -> None:
    """For a server that hwloc describes."""
    shown = check(run_mprun, tmp_path, *options)
    assert shown.returncode == 0, shown.stderr
    (line,) = [line for line in shown.stdout.splitlines() if line.split()[:1] == ["binding"]]
    assert expected in line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--binding", "core", "-n", "9", "--threads-per-worker", "1"], "9 workers of 1 thread need 9 cores"),
        (["--binding", "cores"], "/binding"),
        (["--set", 'binding=["0-99"]'], "usable are 0-15"),
        (["--set", 'binding=["3-1"]'], 'allowed: processors such as "0-3,8"'),
    ],
)
def test_what_cannot_be_is_refused(run_mprun: RunCommand, tmp_path: Path, options: list[str], message: str) -> None:
    """By one error that says what is there."""
    refused = check(run_mprun, tmp_path, *options)
    assert refused.returncode == 2
    assert message in refused.stderr


def test_the_doctor_shows_cores_and_nodes(run_mprun: RunCommand) -> None:
    """As they are, or as hwloc describes them."""
    shown = run_mprun("doctor", env=SERVER).stdout
    assert "8 cores, 2 packages, 2 memory nodes" in shown
    assert "package 1, memory node 1: 4 cores, CPUs 8-15, workers 8-15" in shown
    here = run_mprun("doctor", "--json")
    assert f"CPUs {HERE[0]}" in json.loads(here.stdout)["processors"]


def test_the_page_shows_the_processors_of_workers(run_job: RunCommand, run_mprun: RunCommand, tmp_path: Path) -> None:
    """Of those that were bound."""
    spec = {"script": "job.py:run", "inputs": {"range": 2}, "processes": 2, "binding": [str(HERE[1])]}
    run = run_job(spec, scripts={"job.py": SCRIPT}).check()
    run_mprun("report", "--html", tmp_path / "page.html", run.run_dir).check()
    page = (tmp_path / "page.html").read_text()
    assert "<th>CPUs</th>" in page
    assert f"<td>{HERE[1]}</td>" in page


TOUCHES = """
import mmap
import os
import re

import mprun


def run(_):
    mprun.barrier("both", 2).wait()
    memory = mmap.mmap(-1, 8 << 20)
    memory.write(bytes(8 << 20))
    node = None
    with open("/proc/self/numa_maps") as maps:
        for line in maps:
            pages = {int(node): int(count) for node, count in re.findall(r" N(\\d+)=(\\d+)", line)}
            if sum(pages.values()) == 2048:
                node = max(pages, key=pages.get)
    return [sorted(os.sched_getaffinity(0)), node]
"""


needs_nodes = pytest.mark.skipif(
    not (NODES / "node1").exists() or (NODES / "node2").exists() or len(HERE) != os.cpu_count(),
    reason="needs two memory nodes and all processors, as the machine numa has (tests/machines)",
)


@needs_nodes
@pytest.mark.parametrize("method", START_METHODS)
def test_workers_are_spread_over_memory_nodes(run_job: RunCommand, method: str) -> None:
    """By default; and what a worker touches first is beside it."""
    found = run_two(run_job, TOUCHES, start_method=method)
    beside = [processors((NODES / f"node{node}/cpulist").read_text()) for node in (0, 1)]
    assert found == {node: [beside[node], node] for node in (0, 1)}


POLICIES = """
import mmap
import os
import re

import mprun

SIZE = 8 << 20
common = None


def policy(of):
    \"\"\"Of the mapping that holds these bytes: its policy, and the nodes that have a tenth of its pages or more.\"\"\"
    import ctypes

    address = ctypes.addressof(ctypes.c_char.from_buffer(of))
    with open("/proc/self/numa_maps") as maps:
        line = [line for line in maps if int(line.split()[0], 16) <= address][-1]
    pages = {int(node): int(count) for node, count in re.findall(r" N(\\d+)=(\\d+)", line)}
    return [line.split()[1], sorted(n for n in pages if pages[n] * 10 >= sum(pages.values()))]


def setup():
    global common
    common = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    common.write(bytes(SIZE))


def run(_):
    mprun.barrier("both", 2).wait()
    own = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    own.write(bytes(SIZE))
    shared = mprun.shared["table"]
    shared[:] = 1
    found = {"own": policy(own), "shared": policy(shared)}
    return {**found, "common": policy(common)} if os.environ["METHOD"] == "fork" else found
"""


@needs_nodes
@pytest.mark.parametrize("method", START_METHODS)
def test_memory_is_where_the_job_wants_it(run_job: RunCommand, method: str) -> None:
    """A worker's own on its node, what all read on both."""
    shared = {"table": {"shape": [1 << 20], "dtype": "float64"}}
    policies = {"membind": "on", "interleave": "on", "shared": shared, "env": {"METHOD": method}}
    for node, found in run_two(run_job, POLICIES, setup="setup", start_method=method, **policies).items():
        assert found["own"] == [f"bind:{node}", [node]]
        assert found["shared"] == ["interleave:0-1", [0, 1]]
        if method == "fork":
            assert found["common"][1] == [0, 1]


@needs_nodes
def test_workers_do_not_interleave_memory_of_their_own(run_job: RunCommand) -> None:
    """They have left the policy of their host."""
    found = run_two(run_job, TOUCHES, interleave="on")
    assert {worker: node for worker, (_, node) in found.items()} == {0: 0, 1: 1}


@needs_nodes
def test_commands_have_memory_of_their_node(run_job: RunCommand) -> None:
    """By a policy that survives exec."""
    command = ["sh", "-c", "grep -c bind: /proc/self/numa_maps"]
    spec = {"command": command, "inputs": {"range": 2}, "processes": 2, "membind": "on"}
    for value in run_job(spec).check().values():
        assert int(value["stdout"]) > 0


@pytest.mark.skipif(HAS_NODES and (NODES / "node1").exists(), reason="needs a machine with one memory node")
def test_one_memory_node_leaves_memory_as_it_is(run_job: RunCommand) -> None:
    """And the job says so."""
    script = """
def run(_):
    with open("/proc/self/numa_maps") as maps:
        return {line.split()[1] for line in maps} <= {"default"}
"""
    spec = {"script": "job.py:run", "inputs": {"range": 2}, "processes": 2, "membind": "on", "interleave": "on"}
    run = run_job(spec, "--explain", scripts={"job.py": script}).check()
    assert run.values() == [True, True]
    assert "without effect on one memory node" in run.stderr


def processors(text: str) -> list[int]:
    """Of a list such as "0-3,8"."""
    ranges = [part.split("-") for part in text.strip().split(",")]
    return [cpu for ends in ranges for cpu in range(int(ends[0]), int(ends[-1]) + 1)]
