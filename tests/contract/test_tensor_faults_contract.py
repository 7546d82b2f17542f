"""Tensors that cannot be kept, workers that die or lie, full disks: what mprun reports, and what remains."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
from pathlib import Path

import numpy
import pytest

import harness
from harness import MountDisk, RunCommand
from tensor_jobs import equal, failures, load, spec, tensors_of

CLONE_NEWNS = 0x20000  # linux/sched.h

# The first attempt of task 2 (or every attempt) dies when it has written half of its row.
TORN = """
import os
import signal

import numpy

write = os.pwrite
DEADLY = {attempts!r}


def torn(fd, data, offset):
    deadly = os.environ.get("MPRUN_TASK") == "2" and os.environ["MPRUN_ATTEMPT"] in DEADLY
    if not deadly or offset == 0:
        return write(fd, data, offset)
    write(fd, data[: len(data) // 2], offset)
    os.kill(os.getpid(), signal.SIGKILL)


os.pwrite = torn


def evaluate(number):
    return {{"result": numpy.full(1000, number + 1)}}
"""


def test_a_worker_killed_while_it_writes(run_job: RunCommand, start_method: str) -> None:
    """Tried again, the task writes its own row again; a row without a result is zeros in the end."""
    job = spec("evaluate", start_method=start_method)
    run = run_job(job, scripts={"job.py": TORN.format(attempts="1")}).check()
    wanted = (numpy.arange(4) + 1)[:, None].repeat(1000, 1)
    assert equal(load(run, "result"), wanted)
    assert run.results()[2]["attempt"] == 2
    run = run_job(job, scripts={"job.py": TORN.format(attempts="12")}).check(1)
    wanted[2] = 0
    assert equal(load(run, "result"), wanted)
    entry = tensors_of(run)["tensors/result.npy"]
    assert (entry["rows_done"], entry["rows_missing"]) == (3, 1)


REFUSED = """
import numpy


class OnAccelerator:
    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, stream=None):
        raise AssertionError("this must not be called")


class Device:
    type = "cuda"

    def __str__(self):
        return "cuda:0"


def torch_tensor():
    import torch

    class Cuda(torch.Tensor):
        device = Device()

    return torch.zeros(2).as_subclass(Cuda)


def sparse():
    import torch

    return torch.eye(3).to_sparse()


CASES = {
    "objects": lambda: numpy.array([{}, None]),
    "records": lambda: numpy.zeros(2, "i4,f4"),
    "masked": lambda: numpy.ma.array([1, 2], mask=[0, 1]),
    "accelerator": OnAccelerator,
    "cuda": torch_tensor,
    "sparse": sparse,
    "deep": lambda: {"a": {"b": numpy.zeros(2)}},
    "both": lambda: {"a": numpy.zeros(1), "b": [numpy.zeros(2)]},
    "slash": lambda: {"../a": numpy.zeros(2)},
    "hidden": lambda: {".a": numpy.zeros(2)},
    "long": lambda: {"a" * 201: numpy.zeros(2)},
    "number": lambda: {1: numpy.zeros(2)},
    "many": lambda: [numpy.zeros(1)] * 1001,
    "no bytes": lambda: numpy.zeros(2, "S0").astype("V0"),
}


def evaluate(name):
    return CASES[name]()
"""

REASONS = {
    "objects": "dtype object",
    "records": "for each field",
    "masked": ".filled(",
    "accelerator": ".cpu()",
    "cuda": "on the device cuda:0: return it with .cpu()",
    "sparse": ".to_dense()",
    "deep": "inside of a member",
    "both": "inside of a member",
    "slash": "no plain file name",
    "hidden": "no plain file name",
    "long": "no plain file name",
    "number": "name it by a string",
    "many": "at most 1000",
    "no bytes": "dtype",
}


def test_what_cannot_be_kept_is_refused(run_job: RunCommand) -> None:
    job = spec("evaluate", inputs={"items": list(REASONS)})
    run = run_job(job, scripts={"job.py": REFUSED}).check(1)
    for (name, reason), result in zip(REASONS.items(), run.results()):
        assert result["status"] == "failed", name
        assert reason in result["error"]["message"], name
        assert result["error"]["type"] == "TypeError"
        assert result["error"]["traceback"] is None
    assert run.summary()["tensors"] == []


def test_text_of_other_widths_fits_nowhere(run_job: RunCommand) -> None:
    script = """
import numpy


def evaluate(number):
    return numpy.array(["x" * (number + 1)])
"""
    run = run_job(spec("evaluate", processes=1), scripts={"job.py": script}).check(1)
    assert len(failures(run)) == 3
    assert "return the same shape and dtype from every task" in failures(run)[0]


@pytest.mark.parametrize(
    "claim", ["name, begin + 1, end + 1", "name, begin, end + 1", "'other', begin, end"]
)
def test_a_false_claim_fails_the_task(run_job: RunCommand, claim: str) -> None:
    script = f"""
import numpy
import mprun.tensor_files

honest = mprun.tensor_files.claim


def lie(kind, name, begin, end):
    return honest(kind, {claim}) if begin == 2 else honest(kind, name, begin, end)


mprun.tensor_files.claim = lie


def evaluate(number):
    return {{"result": numpy.full(2, number)}}
"""
    run = run_job(spec("evaluate"), scripts={"job.py": script}).check(1)
    assert [result["status"] for result in run.results()] == ["ok", "ok", "failed", "ok"]
    assert run.results()[2]["error"]["type"] == "TensorError"
    assert tensors_of(run)["tensors/result.npy"]["rows_missing"] == 1
    assert (load(run, "result")[2] == 0).all()


def test_a_name_that_is_not_utf8_does_no_harm(run_job: RunCommand) -> None:
    """A malicious worker claims a file whose name is not UTF-8, which JSON cannot express."""
    script = r"""
import os
import struct

import mprun.tensor_files
import numpy


def lie(kind, name, begin, end):
    folder = os.environb[b"MPRUN_RUN_DIR"] + b"/tensors/"
    os.link(folder + b"result.npy", folder + b"\xff.npy")
    return struct.pack("=QQII", begin, end, kind, 1) + b"\xff"


mprun.tensor_files.claim = lie


def evaluate(number):
    return numpy.zeros(3)
"""
    run = run_job(spec("evaluate", 1), "--summary-json", scripts={"job.py": script}).check()
    [entry] = json.loads(run.stdout)["tensors"]
    assert (entry["name"], entry["rows_done"]) == ("\ufffd", 1)
    assert tensors_of(run)["tensors/\ufffd.npy"] == entry


def test_a_full_disk(run_job: RunCommand, mount_disk: MountDisk) -> None:
    """There is no room for all rows: the first task reports it, and the results are kept."""
    script = """
import numpy


def evaluate(number):
    return numpy.zeros(100_000, "u1") if number else "small"
"""
    disk = mount_disk("1m")
    run = run_job(spec("evaluate", 20), "--output", disk / "run", scripts={"job.py": script})
    run.check(1)
    assert run.results()[0]["value"] == "small"
    assert len(failures(run)) == 19
    reason = "No space left on device; all of it takes 2004096 bytes"
    assert all(reason in text for text in failures(run))
    assert not list((disk / "run/tensors").iterdir())


def crowd() -> None:
    """Context: child after fork. Leaves it a full /dev/shm of one page and 64 descriptors."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
        raise OSError("no mounts of its own")
    mounted = "mount --make-rprivate / && mount -t tmpfs -o size=4k tmpfs /dev/shm"
    if os.system(f"{mounted} && head -c 4096 /dev/zero >/dev/shm/full") != 0:
        raise OSError("/dev/shm cannot be mounted")
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


@pytest.mark.skipif(bool(harness.PRELOAD), reason="a sanitizer opens a pipe to look at memory, and finds none left")
def test_full_shared_memory_and_few_descriptors(
    run_job: RunCommand, start_method: str, tmp_path: Path
) -> None:
    """mprun needs neither: its memory files have no names, and a tensor's file is open while it is written."""
    script = """
import os

import mprun
import numpy


def evaluate(rows):
    with mprun.lock("seen"):
        mprun.shared["seen"][int(os.environ["MPRUN_TASK"])] = mprun.counter("tasks").add()
    with open("/dev/shm/more", "ab", buffering=0) as file:
        try:
            file.write(bytes(4096))
        except OSError:
            return {str(name): rows * name for name in range(50)}
    raise AssertionError("there was room")
"""
    numpy.save(tmp_path / "rows.npy", numpy.arange(40.0))
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no mounts of its own for a process here")
    job = spec("evaluate", start_method=start_method, inputs={"npy": "rows.npy", "batch": 4})
    job["shared"] = {"seen": {"shape": [10], "dtype": "int64"}}
    run = run_job(job, scripts={"job.py": script}, preexec_fn=crowd).check()
    assert sorted(numpy.load(run.run_dir / "shared/seen.npy")) == list(range(1, 11))
    for name in range(50):
        assert equal(load(run, str(name)), numpy.arange(40.0) * name)


def test_workers_that_start_together_reserve_the_space_once(
    run_job: RunCommand, mount_disk: MountDisk
) -> None:
    """There is no room for two files of that size."""
    script = """
import numpy


def evaluate(number):
    return numpy.full(100_000, number, "u1")
"""
    disk = mount_disk("3m")
    job = spec("evaluate", 20, processes=4)
    run = run_job(job, "--output", disk / "run", scripts={"job.py": script}).check()
    assert equal(load(run, "result"), numpy.arange(20, dtype="u1")[:, None].repeat(100_000, 1))


@pytest.mark.parametrize("case", ["taken", "unsupported"])
def test_a_file_is_given_its_name_once(run_job: RunCommand, case: str) -> None:
    """An existing file is used; without hard links a new one still gets its name."""
    script = f"""
import errno
import os
import shutil

import numpy

link = os.link


def strange_link(temporary, path):
    if {case!r} == "unsupported":
        raise OSError(errno.EPERM, "no links here")
    try:
        shutil.copy(temporary, copy := temporary + ".copy")
        link(copy, path)
    finally:
        os.remove(copy)
    link(temporary, path)


os.link = strange_link


def evaluate(number):
    return numpy.full(2, number)
"""
    run = run_job(spec("evaluate"), scripts={"job.py": script}).check()
    assert equal(load(run, "result"), numpy.arange(4)[:, None].repeat(2, 1))
    assert os.listdir(run.run_dir / "tensors") == ["result.npy"]
