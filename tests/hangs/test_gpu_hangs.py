"""Hangs of programs that use a real GPU, and waits for it that are none, where there is one.

Everywhere else cuda_driver.c stands in for the driver (the case cuda_lock, the control cuda_wait).
"""

from __future__ import annotations

from pathlib import Path

import pytest

import gpu
import harness
import side_by_side
from harness import Runner

pytestmark = gpu.is_needed

BUSY = """
import ctypes, sys, threading
import torch


def keep_busy():
    for _ in range(80):
        torch.cuda._sleep(170_000_000)  # 80 times about 0.1 s


def wait():
    event = torch.cuda.Event(blocking=True)
    event.record()
    event.synchronize()


keep_busy()
"""
WAITS = {
    "spinning": "torch.cuda.synchronize()",
    "blocked": "wait()",
    "thread": """
thread = threading.Thread(target=lambda: (keep_busy(), wait()))
thread.start()
thread.join()
""",
    "callback": """
path = next(line.split()[-1] for line in open("/proc/self/maps") if "/libcudart" in line)
finished = threading.Event()
function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: finished.set())
assert ctypes.CDLL(path).cudaLaunchHostFunc(None, function, None) == 0
finished.wait()
""",
    "child": """
import os
if os.environ.get("CHILD") is None:
    import subprocess
    subprocess.run([sys.executable, __file__], env={**os.environ, "CHILD": "1"}, check=True)
wait()
""",
}
HANGS = {
    "lock": (
        """
import threading
import torch

torch.ones(9, device="cuda").sum().item()
lock = threading.Lock()
lock.acquire()
lock.acquire()  # hangs here
""",
        ("stalled", "lock-cycle"),
    ),
    "dataloader": (
        """
import threading
import torch
from torch.utils.data import DataLoader, Dataset

lock = threading.Lock()


class Data(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, index):
        with lock:
            return torch.ones(4)


torch.ones(9, device="cuda").sum().item()
lock.acquire()
for batch in DataLoader(Data(), num_workers=2, pin_memory=True, multiprocessing_context="fork"):
    batch.cuda(non_blocking=True)
""",
        ("partial-deadlock", "lock-held-at-fork"),
    ),
}
COLLECTIVES = (
    gpu.MANY_RANKS_ON_ONE
    + """
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
mine = torch.ones(4, device="cuda")
if dist.get_rank() == 0:
    dist.all_reduce(mine)
dist.barrier()
"""
)


@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_for_the_gpu_is_no_hang(runner: Runner, tmp_path: Path, wait: str) -> None:
    (tmp_path / "wait.py").write_text(BUSY + WAITS[wait] + "\nprint('done')\n")
    running = runner.start("--on-hang", "report", "--", harness.MPRUN_PYTHON, "wait.py", output=False)
    run = running.wait(120)
    assert not list(side_by_side.complaints(side_by_side.End(run.returncode, run.stdout, run.stderr))), run


@pytest.mark.parametrize("name", HANGS)
def test_a_hang_beside_the_gpu_is_named(runner: Runner, tmp_path: Path, name: str) -> None:
    program, (verdict, cause) = HANGS[name]
    (tmp_path / "hang.py").write_text(program)
    running = runner.start("--on-hang", "report", "--", harness.MPRUN_PYTHON, "hang.py", output=False)
    harness.wait_until(lambda: f"({cause})" in running.stderr, 60, f"the cause {cause}")
    assert verdict in running.stderr, running.stderr


def test_ranks_in_different_collectives_are_named(runner: Runner, tmp_path: Path) -> None:
    spec = {"script": "rank.py", "device": "cuda", "start_method": "spawn", "processes": 2}
    running = runner.start_job(spec, "--on-hang", "report", scripts={"rank.py": COLLECTIVES})
    harness.wait_until(lambda: "(collective-mismatch)" in running.stderr, 60, "the cause")
