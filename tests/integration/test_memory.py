"""The memory of jobs: a forked model exists once, arrays stream through the page cache."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

import harness
from harness import RunCommand, Running, StartCommand

MEGABYTE = 1 << 20

MODEL = """
import os
import sys

import torch

import events


def setup():
    global model
    side = int(sys.argv[1])
    layers = [torch.nn.Linear(side, side) for _ in range(4)]
    model = torch.nn.Sequential(*layers).eval()


def evaluate(number):
    with torch.inference_mode():
        total = float(model(torch.ones(4, model[0].in_features)).sum())
    events.mark("evaluated")
    events.wait_for("measured")
    return total
"""


ACTIVATIONS = """
import resource

import numpy


def evaluate(number):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):  # as the layers of a net: some tensors at once, then none
        tensors = [numpy.ones(1 << 19) for _ in range(8)]
        del tensors
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
"""


def proportional_bytes(running: Running) -> int:
    """The PSS of all processes of a job, without files: those are shared with whatever else runs on the machine."""
    total = 0
    for process in running.children():
        text = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii")
        found = re.search(r"^Pss_Anon: *(\d+) kB", text, re.MULTILINE)
        assert found is not None
        total += int(found[1]) * 1024
    return total


def test_a_forked_model_is_in_memory_once(start_job: StartCommand, tmp_path: Path) -> None:
    """Eight workers that evaluate take 1.2 times the model at most, beyond what they take with a tiny one."""
    taken = {}
    for side in (8, 3000):
        job = {
            "script": "job.py:evaluate",
            "setup": "setup",
            "processes": 8,
            "chunk_size": 1,
            "args": [str(side)],
            "inputs": {"range": 8},
        }
        for mark in ("evaluated", "measured"):
            (tmp_path / mark).unlink(missing_ok=True)
        running = start_job(job, "--output", f"out-{side}", scripts={"job.py": MODEL, "events.py": harness.EVENTS})
        harness.wait_until(lambda: len(harness.marks(tmp_path / "evaluated")) == 8, 120, "eight workers")
        taken[side] = proportional_bytes(running)
        (tmp_path / "measured").write_text("\n")
        running.wait().check()
    model = 4 * (3000 * 3000 + 3000) * 4
    assert taken[3000] - taken[8] < 1.2 * model
    assert taken[3000] - taken[8] > 0.9 * model  # or it was not the model that was measured


@pytest.fixture
def memory_group(tmp_path: Path) -> Iterator[Path]:
    """A control group whose processes may hold 192 MiB, page cache included; skips where none can be made."""
    root = Path("/sys/fs/cgroup")
    first_version = (root / "memory" / "cgroup.procs").exists()
    group = (root / "memory" if first_version else root) / f"mprun-test-{os.getpid()}"
    limit = group / ("memory.limit_in_bytes" if first_version else "memory.max")
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        limit.write_text(str(192 * MEGABYTE))
    except OSError as error:
        group.rmdir()
        pytest.skip(f"no control group for memory here: {error}")
    yield group
    harness.wait_until(lambda: not (group / "cgroup.procs").read_text(), what="the group's end")
    group.rmdir()


def test_arrays_larger_than_memory(
    run_job: RunCommand, memory_group: Path, tmp_path: Path
) -> None:
    """384 MiB in and 384 MiB out, by processes that may hold half of one."""
    rows, row = 96, 1 << 20  # float32
    source = numpy.lib.format.open_memmap(tmp_path / "in.npy", "w+", "f4", (rows, row))
    source[:, 0] = numpy.arange(rows)
    source.flush()
    script = """
def evaluate(batch):
    return batch + 1
"""
    run = run_job(
        {
            "script": "job.py:evaluate",
            "processes": 2,
            "inputs": {"npy": "in.npy", "batch": 4},
        },
        scripts={"job.py": script},
        preexec_fn=lambda: (memory_group / "cgroup.procs").write_text(str(os.getpid())),
        timeout=300,
    ).check()
    assert run.summary()["counts"]["retried"] == 0  # no worker was killed for memory
    result = numpy.load(run.run_dir / "tensors" / "result.npy", mmap_mode="r")
    assert result.shape == (rows, row)
    assert (result[:, 0] == numpy.arange(rows) + 1).all()
    assert (result[:, 1:] == 1).all()


def test_freed_tensors_are_used_again(run_job: RunCommand) -> None:
    """Memory that a task frees is not returned to the kernel and fetched again page by page for the next."""
    job = {"script": "job.py:evaluate", "inputs": {"range": 4}, "processes": 1}
    faults = run_job(job, scripts={"job.py": ACTIVATIONS}).check().values()
    pages_of_one = (4 << 20) // os.sysconf("SC_PAGE_SIZE")
    assert max(faults[1:]) < pages_of_one, faults
