"""Ranks of several shards start again together after the failure of one, without any cluster."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any, Callable

import pytest

import harness
from harness import RunCommand, Running, StartCommand, marks, wait_until

HEAD = """
import os
import sys
import time

import mprun
from events import mark, wait_for

rank = mprun.rank()
attempt = int(os.environ["MPRUN_ATTEMPT"])
mark(f"began-{attempt}", rank)
wait_for(f"began-{attempt}", 4)
"""
# The last rank of the second shard fails in the first attempt; one of the first shard has ended well before.
FAILS_ONCE = """
if attempt == 1 and rank == 0:
    mark("well")
elif attempt == 1 and rank == 3:
    wait_for("well")
    raise RuntimeError("out of luck")
elif attempt == 1:
    time.sleep(600)
mprun.result([attempt, os.environ["MASTER_PORT"], os.environ["WORLD_SIZE"]])
"""
WAITS = """
if not os.path.exists("over"):
    wait_for("go")
mprun.result(attempt)
"""
PLACE = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
StartShards = Callable[..., "list[Running]"]


@pytest.fixture
def start_shards(start_job: StartCommand) -> StartShards:
    """start_shards(script, retries=1): two shards of two ranks below out, or those that are named."""

    def start(script: str, *options: str, which: tuple[int, ...] = (1, 2), **fields: Any) -> list[Running]:
        spec = {"script": "ranks.py", "processes": 2, "limits": {"heartbeat_seconds": 4}, "retries": 1, **fields}
        scripts = {"ranks.py": HEAD + script, "events.py": harness.EVENTS}
        return [
            start_job(
                {**spec, "output": {"dir": "out"}},
                "--shard",
                f"{shard}/2",
                *options,
                output=False,
                scripts=scripts,
                env=PLACE,
            )
            for shard in which
        ]

    return start


def values(run_dir: Path) -> list[Any]:
    lines = map(json.loads, (run_dir / "results.jsonl").read_text().splitlines())
    return [(line["status"], line.get("value")) for line in lines]


def all_began(folder: Path, attempt: int = 1) -> None:
    wait_until(lambda: len(marks(folder / f"began-{attempt}")) == 4, 30, f"all ranks of attempt {attempt}")


def test_all_start_again(start_shards: StartShards, run_mprun: RunCommand, tmp_path: Path) -> None:
    """Though all ranks of the first shard may have ended well, with the next port and the results of that attempt."""
    first, second = (shard.wait(60).check() for shard in start_shards(FAILS_ONCE))
    notice = "rank 3 failed (RuntimeError: out of luck): all 4 ranks start again, 1 of 1"
    assert second.stderr.count(notice) == 1
    assert first.stderr.count("shard 2: " + notice) == 1
    run_mprun("merge", "out").check()
    assert values(tmp_path / "out") == [("ok", [2, "29512", "4"])] * 4
    assert (tmp_path / "out/rendezvous").exists() and (tmp_path / "out/shards/2/rendezvous").exists()


def test_a_shard_waits_until_all_others_have_ended_well(start_shards: StartShards, tmp_path: Path) -> None:
    """Its results are kept, and given up if another one fails."""
    script = """
if rank >= 2:
    wait_for(f"go-{attempt}")
    assert attempt == 2
mprun.result(attempt)
"""
    first, second = start_shards(script, "--progress", "always")
    wait_until(lambda: "waiting for shard 2" in first.stderr, 30, "the first shard to wait")
    assert (tmp_path / "out/shards/1/results.jsonl").read_text() == ""
    (tmp_path / "go-1").write_text("\n")
    all_began(tmp_path, 2)
    assert first.process.poll() is None
    (tmp_path / "go-2").write_text("\n")
    for shard in (first, second):
        shard.wait(60).check()
    assert values(tmp_path / "out/shards/1") == [("ok", 2)] * 2


@pytest.mark.parametrize("retries", [{"on_error": 1}, {"on_death": 1}])
def test_a_failure_without_a_further_attempt_ends_all(
    retries: dict[str, int], start_shards: StartShards, tmp_path: Path
) -> None:
    script = """
if rank < 2:
    sys.exit(0)
if rank == 2:
    raise RuntimeError("out of luck")
time.sleep(600)
"""
    first, second = (shard.wait(60).check(1) for shard in start_shards(script, retries=retries))
    assert "shard 2 has stopped: rank 2 failed; the ranks of this shard are ended" in first.stderr
    attempt = 2 if "on_error" in retries else 1
    assert len(marks(tmp_path / "began-1")) == 4
    assert (tmp_path / "began-2").exists() == (attempt == 2)
    last = json.loads((tmp_path / "out/shards/2/results.jsonl").read_text().splitlines()[0])
    assert (last["status"], last["attempt"]) == ("failed", attempt)
    assert second.stderr.count("rank 2 failed; the others are ended") == 1


@pytest.mark.parametrize("gone", [0, 1])
def test_a_shard_that_is_killed_ends_the_other(gone: int, start_shards: StartShards, tmp_path: Path) -> None:
    """The leader or another one, as with the power of a node."""
    shards = start_shards(WAITS)
    all_began(tmp_path)
    shards[gone].stop()
    run = shards[1 - gone].wait(60).check(1)
    assert f"shard {gone + 1} has not been heard from for too long" in run.stderr
    # The next session is not misled by what this one has left.
    for path in tmp_path.glob("began-*"):
        path.unlink()
    (tmp_path / "go").write_text("\n")
    for shard in start_shards(WAITS):
        shard.wait(60).check()


def test_a_shard_that_is_killed_and_started_once_more(start_shards: StartShards, tmp_path: Path) -> None:
    """It cannot join the ranks of the others, which have a rank less."""
    first, second = start_shards(WAITS)
    all_began(tmp_path)
    second.stop()
    (again,) = start_shards(WAITS, which=(2,))
    for shard in (first, again):
        assert "shard 2 has begun anew" in shard.wait(60).check(1).stderr


def test_an_interrupt_of_one_ends_all(start_shards: StartShards, tmp_path: Path) -> None:
    first, second = start_shards(WAITS)
    all_began(tmp_path)
    second.send_signal(signal.SIGINT)
    wait_until(lambda: "shard 2 has stopped: a signal has asked it to end" in first.stderr, 30, "the notice")
    second.send_signal(signal.SIGINT)
    second.wait(60).check(130)
    first.wait(60).check(1)


def test_a_launch_that_fails_ends_all(start_shards: StartShards, tmp_path: Path) -> None:
    (first,) = start_shards("", "--python", "/bin/false", which=(1,))
    (second,) = start_shards("", which=(2,))
    first.wait(60).check(3)
    assert "shard 1 has stopped: " in second.wait(60).check(1).stderr


HANGS_ONCE = """
if attempt == 1 and rank == 1:
    import threading

    threading.Event().wait()
elif attempt == 1:
    time.sleep(600)
mprun.result(attempt)
"""


def test_a_hang_starts_all_again(start_shards: StartShards, tmp_path: Path) -> None:
    first, second = (shard.wait(90).check() for shard in start_shards(HANGS_ONCE))
    assert "rank 1 hung" in first.stderr
    assert "shard 1: rank 1 failed (it hung" in second.stderr
    assert values(tmp_path / "out/shards/2") == [("ok", 2)] * 2


def test_a_hang_that_ends_the_job_ends_all(start_shards: StartShards) -> None:
    first, second = start_shards(HANGS_ONCE, "--on-hang", "kill")
    first.wait(90).check(124)
    stderr = second.wait(60).check(1).stderr
    assert "shard 1 has stopped: " in stderr and " hung" in stderr


def test_it_is_said_who_has_not_begun(start_shards: StartShards, tmp_path: Path) -> None:
    (first,) = start_shards("mprun.result(0)", "--progress", "always", which=(1,))
    wait_until(lambda: "waiting for shard 2" in first.stderr, 30, "the first shard to wait")
    assert not (tmp_path / "began-1").exists()
    (second,) = start_shards("mprun.result(0)", which=(2,))
    for shard in (first, second):
        shard.wait(60).check()
