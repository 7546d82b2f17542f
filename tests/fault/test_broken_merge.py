"""mprun merge that is killed, or whose system calls fail, anywhere: no shard is damaged, the next merge is complete."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

import failing
import harness
from harness import Run, RunCommand

KILLED = -1  # faults.h
PARTS = 8  # of the test with the most merges: they run at once
# Calls that change what is on the disk; a merge is killed before each of them.
WRITES = {"open", "openat", "write", "pwrite", "writev", "ftruncate", "fsync", "fdatasync", "rename", "renameat"}
WRITES |= {"mkdir", "unlink", "unlinkat", "symlink", "fallocate", "close", "copy_file_range", "sendfile"}

SCRIPT = """
import numpy


def run(number):
    return {"row": numpy.full(3, number), "odd": numpy.zeros(number), "number": number}
"""
SPEC = {
    "script": "job.py:run",
    "inputs": {"range": 6},
    "processes": 1,
    "output": {"tensors": "safetensors"},
}

Merge = Callable[..., Run]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return failing.build_library(tmp_path_factory.mktemp("library"))


@pytest.fixture
def merge(library: Path, run_mprun: RunCommand, tmp_path: Path) -> Merge:
    """merge(plan=None, log=False): of the folder out."""

    def run(plan: str | None = None, log: bool = False) -> Run:
        env = failing.environment(library, plan, tmp_path / "faults.log" if log else None)
        return run_mprun("merge", "out", env=env)

    return run


@pytest.fixture(params=["static", "dynamic"])
def shards(request: pytest.FixtureRequest, run_job: RunCommand, tmp_path: Path) -> Path:
    """A folder with two shards, not yet merged."""
    for shard in ("1/2", "2/2"):
        words = ["--balance", request.param, "--shard", shard, "--output", "out"]
        run_job(SPEC, *words, scripts={"job.py": SCRIPT}).check()
    return (tmp_path / "out").rename(tmp_path / "shards")


def files(folder: Path) -> dict[str, bytes]:
    """Everything in a folder that depends neither on the time nor on the folder's name."""
    named = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    found = {name: path.read_bytes() for name, path in named.items()}
    for name in [name for name in found if name.endswith("summary.json")]:
        found[name] = json.dumps(json.loads(found[name])["counts"]).encode()
    return found


def all_sites(merge: Merge, shards: Path, tmp_path: Path) -> tuple[list[failing.Site], dict[str, bytes]]:
    """The calls of a merge, and its outcome where nothing fails."""
    shutil.copytree(shards, tmp_path / "out")
    merge(log=True).check()
    return failing.read_sites(tmp_path / "faults.log"), files(tmp_path / "out")


def struck(
    merge: Merge, shards: Path, tmp_path: Path, plans: Iterator[str], whole: dict[str, bytes]
) -> Iterator[tuple[str, Run]]:
    """Each plan, and the merge that met it; afterwards its shards must be unchanged, and another merge complete."""
    before = files(shards)
    for plan in plans:
        shutil.rmtree(tmp_path / "out")
        shutil.copytree(shards, tmp_path / "out")
        yield plan, merge(plan)
        after = files(tmp_path / "out")
        assert {name: after.get(name) for name in before} == before, plan
        merge().check()
        assert files(tmp_path / "out") == whole, plan


def test_a_merge_that_is_killed_anywhere(merge: Merge, shards: Path, tmp_path: Path) -> None:
    sites, whole = all_sites(merge, shards, tmp_path)
    plans = (failing.plan_for(site, KILLED, "once") for site in sites if site.call in WRITES)
    killed = 0
    for plan, run in struck(merge, shards, tmp_path, plans, whole):
        assert run.returncode == -9, (plan, run)
        killed += 1
    assert killed > 20


@pytest.mark.parametrize("part", range(PARTS))
def test_a_merge_in_which_any_call_fails(merge: Merge, shards: Path, tmp_path: Path, part: int) -> None:
    sites, whole = all_sites(merge, shards, tmp_path)
    plans = (
        failing.plan_for(site, error, when)
        for site in sites
        for error in failing.ERRORS.get(site.call, ())
        for when in ("once", "forever")
    )
    for plan, run in struck(merge, shards, tmp_path, islice(plans, part, None, PARTS), whole):
        assert run.returncode in (0, 2, 125), (plan, run)
        assert not failing.RAW.search(run.stderr), (plan, run)
        if run.returncode == 0:
            assert files(tmp_path / "out") == whole, (plan, run)
        else:
            assert run.stderr.startswith("mprun: "), (plan, run)
