"""Jobs and ranks on a real GPU, where there is one; test_devices.py tests the same against a false /dev."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gpu
import harness
from harness import RunCommand

pytestmark = gpu.is_needed

COMPUTES = """
import os

import torch


def run(number):
    doubled = torch.full((100,), float(number), device="cuda") * 2
    names = os.environ["MPRUN_DEVICE"], str(doubled.device), torch.cuda.device_count()
    return [float(doubled.sum()), *names]


def tensor(number):
    return torch.full((3,), float(number), device="cuda")


def use():
    torch.ones(3, device="cuda")


def sees():
    return torch.cuda.is_available(), torch.cuda.device_count()


def run_cpu(number):
    return [*sees(), float(torch.ones(3).sum())]
"""
RANK = (
    gpu.MANY_RANKS_ON_ONE
    + """
import torch
import torch.distributed as dist

import mprun

dist.init_process_group(os.environ["BACKEND"])
mine = torch.full((4,), dist.get_rank() + 1.0, device="cuda")
dist.all_reduce(mine)
mprun.result([os.environ["MPRUN_DEVICE"], mine.tolist()])
dist.destroy_process_group()
"""
)
POOL = """
import multiprocessing

import torch


def use(number):
    return torch.ones(number, device="cuda").sum().item()


if __name__ == "__main__":
    use(1)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(use, range(4))
"""


def job(function: str, start_method: str, **more: Any) -> dict[str, Any]:
    """Six tasks for two workers."""
    return {
        "script": f"job.py:{function}",
        "start_method": start_method,
        "processes": 2,
        "inputs": {"range": 6},
        **more,
    }


@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_workers_compute_on_their_device(run_job: RunCommand, start_method: str) -> None:
    run = run_job(job("run", start_method, device="cuda"), scripts={"job.py": COMPUTES}, timeout=120)
    assert run.check().values() == [[200.0 * number, "cuda:0", "cuda:0", 1] for number in range(6)]


def test_one_worker_for_each_device_that_a_task_needs(run_job: RunCommand) -> None:
    spec = job("run", "spawn", needs={"gpus": 1}, processes=64)
    run = run_job(spec, scripts={"job.py": COMPUTES}, timeout=120).check()
    assert len({result["worker"] for result in run.results()}) == len({value[1] for value in run.values()})


def test_tensors_on_a_device_are_refused(run_job: RunCommand) -> None:
    run = run_job(job("tensor", "spawn", device="cuda"), scripts={"job.py": COMPUTES}, timeout=120).check(1)
    assert "the tensor is on the device cuda:0: return it with .cpu()" in run.stderr


def test_forked_workers_have_only_the_cpu(run_job: RunCommand) -> None:
    """Whether or not their host has used the GPU."""
    for setup in ({}, {"setup": "use"}):
        run = run_job(job("run_cpu", "fork", **setup), scripts={"job.py": COMPUTES}, timeout=120)
        assert run.check().values() == [[False, 0, 3.0]] * 6


def test_cuda_is_refused_in_forked_workers_of_a_host_that_used_it(run_job: RunCommand) -> None:
    run = run_job(job("tensor", "fork", setup="use"), scripts={"job.py": COMPUTES}, timeout=120).check(1)
    assert "CUDA was initialised before this process was forked" in run.stderr
    assert "--start-method spawn --device cuda" in run.results()[0]["error"]["message"]


def test_cuda_is_refused_in_a_pool_of_an_unmodified_program(run_mprun: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text(POOL)
    run = run_mprun("--", harness.MPRUN_PYTHON, "pool.py", timeout=120)
    assert run.returncode == 1
    assert "CUDA was initialised before this process was forked" in run.stderr


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_ranks_reduce_on_their_device(run_job: RunCommand, backend: str) -> None:
    spec = {"script": "rank.py", "device": "cuda", "start_method": "spawn", "processes": 2}
    run = run_job(spec, scripts={"rank.py": RANK}, env={"BACKEND": backend}, timeout=120)
    assert run.check().values() == [["cuda:0", [3.0] * 4]] * 2
