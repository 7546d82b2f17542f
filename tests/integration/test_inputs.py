"""Every kind of inputs, as a function gets them; and the cost of many."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import RunCommand, StartCommand

SCRIPT = """
import numpy


def run(value):
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return [str(value.dtype), list(value.shape), value.tolist()]
    return value


def keywords(**values):
    return values
"""
FILES = {"job.py": SCRIPT}


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"items": [1, "a", None, [1, [2]], {"k": {}}]}, [1, "a", None, [1, [2]], {"k": {}}]),
        ({"items": [-(2**63), 2**63, 1e300, 0.1]}, [-(2**63), 2**63, 1e300, 0.1]),
        ({"range": 3}, [0, 1, 2]),
        ({"range": [5, 8]}, [5, 6, 7]),
        ({"range": [3, -4, -3]}, [3, 0, -3]),
        ({"grid": {"b": [1, 2], "a": ["x"]}}, [{"b": 1, "a": "x"}, {"b": 2, "a": "x"}]),
        ({"lines": "in.txt"}, ["one", " two ", "", "last"]),
        ({"jsonl": "in.jsonl"}, [1, {"a": [2]}, "x"]),
    ],
    ids=str,
)
def test_inputs(
    run_job: RunCommand, tmp_path: Path, inputs: dict[str, Any], expected: list[Any]
) -> None:
    (tmp_path / "in.txt").write_bytes(b"one\n two \n\nlast")
    (tmp_path / "in.jsonl").write_bytes(b'\xef\xbb\xbf1\r\n\n  {"a": [2]}\n"x"')
    run = run_job({"script": "job.py:run", "inputs": inputs}, scripts=FILES).check()
    assert run.values() == expected


@pytest.mark.parametrize("chunk_size", [1, 7])
def test_inputs_of_every_kind_and_size_arrive_exactly(run_job: RunCommand, chunk_size: int) -> None:
    """Workers read whole numbers on their own, and inputs ahead of those that they work on."""
    digits = [int("9912345678901234567"[:count]) for count in range(1, 20)]
    numbers = [0, *digits, *(-number for number in digits[:18]), -(2**63), 2**64 - 1]
    items = [*numbers, "1,2", [1, 2], 1.0, True, "x" * 3_000_000, 5, "y" * 70_000]
    script = "def run(value):\n    return [type(value).__name__, str(value)[:40], len(str(value))]\n"
    spec = {"script": "job.py:run", "inputs": {"items": items}, "processes": 2, "chunk_size": chunk_size}
    run = run_job(spec, scripts={"job.py": script}).check()
    assert run.values() == [[type(item).__name__, str(item)[:40], len(str(item))] for item in items]


def test_grid_as_keywords(run_job: RunCommand) -> None:
    """The last axis varies fastest."""
    run = run_job(
        {
            "script": "job.py:keywords",
            "call": "kwargs",
            "inputs": {"grid": {"lr": [0.1, 0.01], "seed": [1, 2]}},
        },
        scripts=FILES,
    ).check()
    points = [(value["lr"], value["seed"]) for value in run.values()]
    assert points == [(0.1, 1), (0.1, 2), (0.01, 1), (0.01, 2)]


def test_glob(run_job: RunCommand, tmp_path: Path) -> None:
    """Absolute paths, sorted by their bytes, relative to the spec; the folder may be called [x]."""
    folder = tmp_path / "[x] *"
    (folder / "data").mkdir(parents=True)
    for name in ("b.txt", "a.txt", "B.txt", "\u00e4.txt", "c.csv", ".hidden.txt"):
        (folder / "data" / name).write_text("")
    (folder / "job.py").write_text(SCRIPT)
    (folder / "job.json").write_text('{"script": "job.py:run", "inputs": {"glob": "data/*.txt"}}')
    run = run_job(folder / "job.json").check()
    names = ["B.txt", "a.txt", "b.txt", "\u00e4.txt"]
    assert run.values() == [str(folder / "data" / name) for name in names]


@pytest.mark.parametrize("job", ["function", "command"])
def test_nothing_runs_for_a_line_that_is_no_json(run_job: RunCommand, tmp_path: Path, job: str) -> None:
    """From a pipe, whose lines are not known before the launch: the task fails, and neither function nor command runs."""
    (tmp_path / "job.py").write_text("def run(value):\n    open(f'ran-{value}', 'w').close()\n    return value\n")
    how = {"script": "job.py:run"} if job == "function" else {"command": ["touch", "ran-{}"]}
    spec = {**how, "inputs": {"jsonl": "-"}, "processes": 1, "working_directory": str(tmp_path)}
    (tmp_path / "job.json").write_text(json.dumps(spec))
    ours, theirs = os.pipe()
    os.write(theirs, b"1\n{half\n3\n")
    os.close(theirs)
    run = run_job(tmp_path / "job.json", stdin=ours).check(1)
    assert [line["status"] for line in run.results()] == ["ok", "failed", "ok"]
    error = run.results()[1]["error"]
    assert error["type"] == "InputError" and "standard input:2:2: not JSON" in error["message"]
    assert sorted(path.name for path in tmp_path.glob("ran-*")) == ["ran-1", "ran-3"]


@pytest.fixture
def arrays(tmp_path: Path) -> Path:
    """A few .npy files."""
    code = (
        "import numpy, sys\n"
        "numpy.save('rows.npy', numpy.arange(14, dtype='float32').reshape(7, 2))\n"
        "numpy.save('flat.npy', numpy.arange(5, dtype='int16'))\n"
        "numpy.save('scalar.npy', numpy.array(3))\n"
        "numpy.save('objects.npy', numpy.array([{}], dtype=object), allow_pickle=True)\n"
    )
    subprocess.run([harness.MPRUN_PYTHON, "-c", code], cwd=tmp_path, check=True, timeout=30)
    return tmp_path


def test_npy(run_job: RunCommand, arrays: Path, start_method: str) -> None:
    """Rows of the first axis, one or several at a time; read where they are needed."""
    spec = {"script": "job.py:run", "start_method": start_method, "processes": 2}
    run = run_job({**spec, "inputs": {"npy": "rows.npy", "batch": 3}}, scripts=FILES).check()
    assert run.values() == [
        ["float32", [3, 2], [[0, 1], [2, 3], [4, 5]]],
        ["float32", [3, 2], [[6, 7], [8, 9], [10, 11]]],
        ["float32", [1, 2], [[12, 13]]],
    ]
    run = run_job({**spec, "inputs": {"npy": "flat.npy"}}).check()
    assert run.values() == [["int16", [], number] for number in range(5)]


@pytest.mark.parametrize("name", ["scalar.npy", "objects.npy"])
def test_npy_that_has_no_rows_for_tasks(run_job: RunCommand, arrays: Path, name: str) -> None:
    run = run_job({"script": "job.py:run", "inputs": {"npy": name}}, scripts=FILES)
    run.check(2)
    assert name in run.stderr, run


def test_the_plan_shows_arrays(run_mprun: RunCommand, arrays: Path) -> None:
    """`mprun check` names files, rows and the first input, and launches nothing."""
    (arrays / "job.py").write_text(SCRIPT)
    spec = {"script": "job.py:keywords", "inputs": {"npy": {"a": "rows.npy"}, "batch": 4}}
    (arrays / "job.json").write_text(json.dumps(spec))
    run = run_mprun("check", "job.json").check()
    assert re.search(r"^inputs +a: .*/rows\.npy, 7 rows in batches of 4", run.stdout, re.M), run
    assert re.search(r"^tasks +2$", run.stdout, re.M), run
    assert re.search(r"^first input +\[0,4\]$", run.stdout, re.M), run


def test_commands_get_rows_and_files(run_job: RunCommand, arrays: Path) -> None:
    """A command has no arrays: {} is the numbers of the rows, or the file."""
    run = run_job({"command": ["echo", "{}"], "inputs": {"npy": "rows.npy", "batch": 4}}).check()
    assert [value["stdout"] for value in run.values()] == ["[0,4]\n", "[4,7]\n"]
    run = run_job({"command": ["echo", "{}"], "inputs": {"npy": "[fr]*.npy"}}).check()
    files = [value["stdout"].strip() for value in run.values()]
    assert files == [str(arrays / "flat.npy"), str(arrays / "rows.npy")]


def test_a_file_that_grows_or_shrinks_later(start_job: StartCommand, tmp_path: Path) -> None:
    """The content at the start counts; if part of it is missing later, the failure is reported."""
    script = """
from events import mark, wait_for


def run(line):
    mark("began")
    wait_for("go")
    return line
"""
    lines = [f"line {number}" for number in range(20_000)]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")
    running = start_job(
        {"script": "job.py:run", "processes": 2, "inputs": {"lines": "in.txt"}},
        scripts={"job.py": script, "events.py": harness.EVENTS},
    )
    harness.wait_until(lambda: harness.marks(tmp_path / "began"), what="the first task")
    with open(tmp_path / "in.txt", "a", encoding="utf-8") as file:
        file.write("one too many\n")
    (tmp_path / "go").write_text("\n")
    assert running.wait().check().values() == lines


def test_many_tasks_cost_little_memory(start_job: StartCommand) -> None:
    """At most 64 bytes a task in the supervisor, besides its fixed needs."""
    peaks: dict[int, int] = {}
    for tasks in (1_000, 300_000):
        running = start_job(
            {"script": "job.py:run", "processes": 2, "inputs": {"range": tasks}},
            "-q",
            scripts={"job.py": "def run(number):\n    return number\n"},
        )
        peak = 0

        def look() -> bool:
            nonlocal peak
            for process in running.children():
                if process.ppid == running.pid:
                    try:
                        status = Path(f"/proc/{process.pid}/status").read_text()
                    except OSError:
                        continue
                    if found := re.search(r"VmHWM:\s+(\d+) kB", status):
                        peak = max(peak, int(found[1]) * 1024)
            return running.process.poll() is not None

        harness.wait_until(look, timeout=60, what="the job")
        running.wait().check()
        peaks[tasks] = peak
    assert peaks[1_000] > 0
    assert peaks[300_000] - peaks[1_000] < 64 * 299_000 + 2**20
