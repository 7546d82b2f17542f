"""A power cut at any point of a run or of a resume: what was on disk is kept, and `mprun resume` ends the job.

Every record is followed by a check of what must be on disk; mprun resumes from a sample of the disks. By hand, for
every cut instead of a sample, and as many more at random:  MPRUN_CUTS=500 pytest fault/test_power_cut.py
"""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy
import pytest

import disk
import harness
from harness import Run, RunCommand, Running, StartCommand, wait_until

TASKS, HALF, APART = 8, 4, 2
CUTS = int(os.environ.get("MPRUN_CUTS", "3"))
BOOT = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
RUN = "runs/out"
#: What mprun may report for a run of which no task had begun.
NOT_BEGUN = re.compile(r"there is no run directory|is not a run directory|run the job again")

SCRIPT = f"""
import numpy

import events


def run(number):
    events.mark("ran", number)
    if number == {HALF}:
        events.wait_for("go", seconds=60)
    return {{"row": numpy.full(5 if number == {APART} else 3, number), "number": number}}
"""


@dataclass
class Cut:
    """A disk after a power cut."""

    at: int  # the last record before it
    how: str
    left: dict[str, bytes | None]
    begun: bool  # a task had begun
    promised: set[int]  # tasks whose results were on disk


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return disk.build_recorder(tmp_path_factory.mktemp("library"))


@pytest.fixture
def recorded(library: Path, tmp_path: Path) -> dict[str, str]:
    """The environment in which everything below tmp_path is recorded."""
    (tmp_path / "disk").mkdir()
    return disk.environment(library, tmp_path, tmp_path / "log")


def lines_of(content: bytes) -> list[tuple[int, int]]:
    """Task and offset of each whole line of results.jsonl."""
    found, at = [], 0
    for line in content.splitlines(keepends=True):
        if line.endswith(b"\n") and line[:1] == b"{":
            found.append((json.loads(line)["task"], at))
        at += len(line)
    return found


def promised(replayed: disk.Disk, run_dir: Path) -> set[int]:
    """The tasks that are certain according to the journal on disk."""
    certain = 0
    for line in replayed.certain(run_dir / "journal.jsonl").splitlines():
        entry = json.loads(line)
        certain = entry.get("certain", 0 if "session" in entry else certain)
    return {task for task, at in lines_of(replayed.certain(run_dir / "results.jsonl")) if at < certain}


def cuts_of(base: disk.Disk, records: list[disk.Record], tmp_path: Path, begun: bool) -> list[Cut]:
    """Every disk that a power cut may leave, once."""
    root = base.root
    tasks = promised(base, root / RUN)
    found: dict[frozenset[tuple[str, bytes | None]], Cut] = {}
    seed = 0
    for at, record in enumerate([None, *records]):
        if record is not None:
            base.apply(record)
            begun = begun or (record.kind == "C" and record.path == str(tmp_path / "ran"))
        tasks = tasks | promised(base, root / RUN)
        check_certain(base.left(disk.nothing_but_certain()), at, begun, tasks)
        ways = {
            "certain": disk.nothing_but_certain(),
            "names": disk.names_without_content(),
            "zeros": disk.names_with_zeros(),
        }
        for _ in range(3):
            seed += 1
            ways[f"seed {seed}"] = disk.any_of_it(seed)
        for how, chosen in ways.items():
            left = base.left(chosen)
            same = frozenset(item for item in left.items() if "/logs/" not in item[0] and "usage" not in item[0])
            cut = found.setdefault(same, Cut(at, how, left, False, set()))
            cut.begun = cut.begun or begun
            cut.promised |= tasks
    return list(found.values())


def check_certain(left: dict[str, bytes | None], at: int, begun: bool, tasks: set[int]) -> None:
    """What resume needs is there once a task has begun, and the tensors of each task that is reported as certain."""
    if begun:
        assert b"\n" in (left.get(f"{RUN}/journal.jsonl") or b""), ("no journal", at)
        assert json.loads(left.get(f"{RUN}/job.json") or b"{}"), ("no job.json", at)
    rows = left.get(f"{RUN}/tensors/row.npy") or b""
    for task in tasks:
        if task == APART:
            tensor = (left.get(f"{RUN}/tensors/{task}.safetensors") or b"")[-40:]
        else:
            tensor = rows[len(rows) - (TASKS - task) * 24 :][:24]
        assert tensor == numpy.full(5 if task == APART else 3, task).tobytes(), ("not on disk", task, at)


def sample(cuts: list[Cut]) -> list[Cut]:
    """CUTS of each kind, spread over the run."""
    kinds = {}
    for cut in cuts:
        kinds.setdefault((cut.how.partition(" ")[0], cut.begun), []).append(cut)
    chosen = []
    for (_, begun), of_kind in kinds.items():
        most = CUTS if begun else max(1, CUTS // 4)
        step = max(1, len(of_kind) / most)
        chosen += [of_kind[int(at * step)] for at in range(min(most, len(of_kind)))]
    return chosen


def check_results(run: Run, wanted: set[int]) -> None:
    results = run.results()
    assert sorted(result["task"] for result in results) == sorted(wanted), run
    rows = numpy.load(run.run_dir / "tensors" / "row.npy")
    for result in results:
        task = result["task"]
        assert result["status"] == "ok" and result["value"]["number"] == task, run
        if "row" in result["value"]["row"]:
            assert rows[task].tolist() == [task] * 3, (run, rows)
        else:
            raw = (run.run_dir / "tensors" / f"{task}.safetensors").read_bytes()
            assert numpy.frombuffer(raw[-40:], "<i8").tolist() == [task] * 5, run


def check_cuts(cuts: list[Cut], run_mprun: RunCommand, tmp_path: Path) -> None:
    """Resumes after each cut."""
    faults = []
    for cut in cuts:
        shutil.rmtree(tmp_path / "disk", ignore_errors=True)
        left = dict(cut.left)
        journal = left.get(f"{RUN}/journal.jsonl")
        if journal:  # the machine was rebooted
            left[f"{RUN}/journal.jsonl"] = journal.replace(BOOT.encode(), BOOT[::-1].encode())
        disk.put(left, tmp_path / "disk")
        (tmp_path / "ran").write_text("")
        run = run_mprun("resume", f"disk/{RUN}", output=False)
        run = Run(run.returncode, run.stdout, run.stderr, tmp_path / "disk" / RUN, run.survivors)
        try:
            if run.returncode == 2 and not cut.begun and NOT_BEGUN.search(run.stderr):
                continue
            run.check()
            check_results(run, set(range(TASKS)))
            again = {int(line) for line in harness.marks(tmp_path / "ran")}
            assert not again & cut.promised, ("run again though it was on disk", again, cut.promised)
        except AssertionError as fault:
            faults.append(f"cut after record {cut.at} ({cut.how}): {str(fault)[:300]}")
    assert not faults, f"{len(faults)} of {len(cuts)} cuts\n" + "\n".join(faults[:10])


def spec_of(durability: str) -> dict[str, object]:
    job = {"script": "job.py:run", "inputs": {"range": TASKS}, "processes": 1, "chunk_size": 1}
    return {**job, "durability": durability}


def start(start_job: StartCommand, durability: str, env: dict[str, str] | None = None) -> Running:
    scripts = {"job.py": SCRIPT, "events.py": harness.EVENTS}
    return start_job(spec_of(durability), "--output", f"disk/{RUN}", scripts=scripts, env=env)


def on_disk(tmp_path: Path) -> set[int]:
    """The tasks that the recorded run knows to be on disk."""
    replayed = disk.Disk(tmp_path / "disk")
    for record in disk.read_records(tmp_path / "log"):
        replayed.apply(record)
    return promised(replayed, tmp_path / "disk" / RUN)


def check_recording(replayed: disk.Disk, records: list[disk.Record], run_dir: Path) -> None:
    """The records cover all changes to the files that count. mprun.log is none of them, and written by stdio."""
    for record in records:
        replayed.apply(record)
    left = replayed.left(disk.everything())
    for path in run_dir.rglob("*"):
        if path.is_file() and path.parent.name != "logs" and path.name != "mprun.log":
            assert left.get(str(path.relative_to(replayed.root))) == path.read_bytes(), path


@pytest.mark.parametrize("durability", ["batch", "each"])
def test_a_power_cut_during_a_run(
    start_job: StartCommand, run_mprun: RunCommand, recorded: dict[str, str], tmp_path: Path, durability: str
) -> None:
    root = tmp_path / "disk"
    running = start(start_job, durability, recorded)
    wait_until(lambda: len(on_disk(tmp_path)) == HALF, timeout=30, what="results on disk")
    (tmp_path / "go").write_text("\n")
    running.wait().check()
    records = disk.read_records(tmp_path / "log")
    check_recording(disk.Disk(root), records, root / RUN)
    check_cuts(sample(cuts_of(disk.Disk(root), records, tmp_path, False)), run_mprun, tmp_path)


def test_a_run_that_has_ended_is_on_disk(
    start_job: StartCommand, recorded: dict[str, str], tmp_path: Path
) -> None:
    """The results in their order and the summary, under their names."""
    root, spec = tmp_path / "disk", {**spec_of("batch"), "inputs": {"range": HALF}}
    scripts = {"job.py": SCRIPT, "events.py": harness.EVENTS}
    start_job(spec, "--output", f"disk/{RUN}", scripts=scripts, env=recorded).wait().check()
    replayed, records = disk.Disk(root), disk.read_records(tmp_path / "log")
    for record in records:
        replayed.apply(record)
    left = replayed.left(disk.nothing_but_certain())
    for name in ("job.json", "results.jsonl", "summary.json"):
        assert left.get(f"{RUN}/{name}") == (root / RUN / name).read_bytes(), name
    log = (root / RUN / "mprun.log").stat().st_ino  # the writes of stdio are not recorded
    assert any(record.kind == "D" and record.inode == log for record in records)


@pytest.mark.parametrize("durability", ["batch", "each"])
def test_a_power_cut_during_a_resume(
    start_job: StartCommand, run_mprun: RunCommand, recorded: dict[str, str], tmp_path: Path, durability: str
) -> None:
    """After another one, followed by a result that does not count."""
    root = tmp_path / "disk"
    running = start(start_job, durability, recorded)
    wait_until(lambda: len(on_disk(tmp_path)) == HALF, timeout=30, what="results on disk")
    supervisor = next(child for child in running.children() if child.ppid == running.pid)
    os.kill(supervisor.pid, signal.SIGKILL)
    running.wait()
    results, journal = root / RUN / "results.jsonl", root / RUN / "journal.jsonl"
    results.write_bytes(results.read_bytes() + results.read_bytes().splitlines(keepends=True)[0])
    journal.write_bytes(journal.read_bytes().replace(BOOT.encode(), BOOT[::-1].encode()))
    (tmp_path / "go").write_text("\n")
    (tmp_path / "log").unlink()
    before = disk.Disk.of(root)
    run_mprun("resume", f"disk/{RUN}", output=False, env=recorded).check()
    records = disk.read_records(tmp_path / "log")
    check_recording(copy.deepcopy(before), records, root / RUN)
    check_cuts(sample(cuts_of(before, records, tmp_path, True)), run_mprun, tmp_path)


def test_a_block_that_is_done_is_on_disk(
    start_job: StartCommand, recorded: dict[str, str], tmp_path: Path
) -> None:
    """No shard runs its tasks again: its results are on disk before its name is. And no block is lost."""
    root, shard = tmp_path / "disk", tmp_path / "disk/shards/1"
    spec = {**spec_of("batch"), "inputs": {"range": HALF}, "balance": "dynamic"}
    scripts = {"job.py": SCRIPT, "events.py": harness.EVENTS}
    start_job(spec, "--shard", "1/1", "--output", "disk", scripts=scripts, env=recorded).wait().check()
    replayed = disk.Disk(root)
    for record in disk.read_records(tmp_path / "log"):
        replayed.apply(record)
        left = replayed.left(disk.nothing_but_certain())
        if "blocks/1" in left:  # the share that it has created is there with all of its blocks, or not at all
            assert sum(name.startswith("blocks/1/") for name in left) == HALF, (record, left)
        if record.kind == "R" and "/done." in record.other:
            done = sum("done." in name for name in replayed.left(disk.everything()))
            assert len(promised(replayed, shard)) >= done, record
    names = [name for name in replayed.left(disk.nothing_but_certain()) if name.startswith("blocks/1/")]
    assert sum("/done." in name for name in names) == HALF, names
    assert not [name for name in names if "/held." in name or "/free." in name], names
