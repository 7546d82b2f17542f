"""Tensors between ranks: torch.distributed and torch.multiprocessing in a script that does not use mprun."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import harness
from harness import Run, RunCommand, StartCommand

COLLECTIVES = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import mprun

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()

total = torch.arange(100_000, dtype=torch.float64) * (rank + 1)
dist.all_reduce(total)

sent = torch.full((3,), float(rank))
dist.broadcast(sent, src=size - 1)

parts = [torch.zeros(2, dtype=torch.int64) for _ in range(size)]
dist.all_gather(parts, torch.tensor([rank, rank * rank]))

torch.manual_seed(rank)
net = DistributedDataParallel(torch.nn.Linear(4, 2, bias=False))
begun = net.module.weight.detach().clone()
net(torch.full((1, 4), float(rank))).sum().backward()
gradient = net.module.weight.grad

dist.barrier()
mprun.result(
    {
        "total": [total[1].item(), total.sum().item()],
        "broadcast": sent.tolist(),
        "gathered": torch.cat(parts).tolist(),
        "begun": begun.flatten().tolist(),
        "gradient": gradient.unique().tolist(),
    }
)
dist.destroy_process_group()
"""

# Between a rank and its child every tensor goes there and back. The child doubles it in place: a copy would not show
# that in the rank. It lives on until the rank has received the last one, as torch asks for.
QUEUES = """
import sys

import torch
import torch.multiprocessing as mp

import mprun

STRATEGIES = ("file_descriptor", "file_system")
DTYPES = (torch.float32, torch.bfloat16)


def double(pairs, received, shared):
    for strategy in STRATEGIES:
        mp.set_sharing_strategy(strategy)
        for source, sink in pairs:
            for _ in DTYPES:
                tensor = source.get()
                tensor.mul_(2)
                shared.add_(1)
                sink.put({"tensor": tensor, "last": tensor[-1].clone()})
    assert received.wait(120)


def exchange(source, sink, dtype):
    tensor = torch.arange(100_000).remainder(100).to(dtype) + mprun.rank()
    wanted = tensor * 2
    source.put(tensor)
    got = sink.get()
    assert torch.equal(got["tensor"], wanted), "what came back"
    assert torch.equal(tensor, wanted), "what was sent is shared"
    assert got["last"] == wanted[-1]


if __name__ == "__main__":
    context = mp.get_context(sys.argv[1])
    pairs = [[make(), make()] for make in (context.Queue, context.SimpleQueue)]
    received, shared = context.Event(), torch.zeros(3).share_memory_()
    child = context.Process(target=double, args=(pairs, received, shared))
    child.start()
    for strategy in STRATEGIES:
        mp.set_sharing_strategy(strategy)
        for source, sink in pairs:
            for dtype in DTYPES:
                exchange(source, sink, dtype)
    received.set()
    child.join()
    mprun.result({"exit_code": child.exitcode, "shared": shared.tolist()})
"""

# Named shared memory, for which torch runs a helper process beside the rank.
NAMED = """
import os
import signal
import sys

import torch
import torch.multiprocessing as mp

from events import mark, wait_for

mp.set_sharing_strategy("file_system")
tensor = torch.zeros(1000).share_memory_()
mark("ready", [name for name in os.listdir("/dev/shm") if name.startswith(f"torch_{os.getpid()}_")])
wait_for("ready", 2)
if sys.argv[1] == "rank":
    os.kill(os.getpid(), signal.SIGKILL)
wait_for("never", seconds=600)
"""


def check_quiet(run: Run) -> None:
    """Neither the watch nor Python reported anything, and the run left nothing of its own."""
    assert run.check().hangs() == []
    for word in ("hang", "stalled", "blocked", "warning", "leaked"):
        assert word not in run.stderr.lower(), run
        for rank in range(len(run.results())):
            assert word not in run.log(rank, "err").lower(), run.log(rank, "err")


@pytest.mark.parametrize("ranks", [2, 3])
def test_collectives_of_torch_distributed(
    run_job: RunCommand, start_method: str, ranks: int
) -> None:
    job = {"script": "ranks.py", "start_method": start_method, "processes": ranks}
    run = run_job(job, scripts={"ranks.py": COLLECTIVES}, timeout=180)
    check_quiet(run)
    values = run.values()
    weight = ranks * (ranks + 1) // 2
    assert values[0]["total"] == [weight, weight * 99_999 * 50_000]
    assert values[0]["broadcast"] == [ranks - 1] * 3
    assert values[0]["gathered"] == [part for rank in range(ranks) for part in (rank, rank**2)]
    assert values[0]["gradient"] == [(ranks - 1) / 2]  # the mean of all ranks' inputs
    assert values[1:] == values[:-1]


@pytest.fixture(name="temporary")
def make_temporary() -> Iterator[Path]:
    """A TMPDIR short enough for the name of a socket in it (108 bytes), which tmp_path need not be."""
    with tempfile.TemporaryDirectory(prefix="mprun-") as folder:
        yield Path(folder)


def check_tidy(folder: Path) -> None:
    """No torch files are left in the folder that jobs had as TMPDIR; conftest looks into /dev/shm."""
    assert [path.name for path in folder.iterdir()] == []


@pytest.mark.parametrize("inner", harness.START_METHODS)
def test_tensors_in_queues_of_a_rank(
    run_job: RunCommand, start_method: str, inner: str, temporary: Path
) -> None:
    """Both sharing strategies, both kinds of queue."""
    job = {"script": "ranks.py", "args": [inner], "start_method": start_method, "processes": 2}
    scripts = {"ranks.py": QUEUES}
    run = run_job(job, scripts=scripts, env={"TMPDIR": str(temporary)}, timeout=240)
    check_quiet(run)
    assert run.values() == [{"exit_code": 0, "shared": [8, 8, 8]}] * 2
    check_tidy(temporary)


@pytest.mark.parametrize("victim", ["rank", "mprun"])
def test_shared_tensors_of_the_killed(
    start_job: StartCommand, start_method: str, victim: str, tmp_path: Path, temporary: Path
) -> None:
    """Whichever process is killed, torch's helpers have the time to remove what the ranks had shared."""
    job = {"script": "ranks.py", "args": [victim], "start_method": start_method, "processes": 2}
    scripts = {"ranks.py": NAMED, "events.py": harness.EVENTS}
    running = start_job(job, scripts=scripts, env={"TMPDIR": str(temporary)})
    ready = tmp_path / "ready"
    harness.wait_until(lambda: len(harness.marks(ready)) == 2, timeout=120, what="the ranks")
    assert all("torch_" in names for names in harness.marks(ready)), "nothing had a name"
    if victim == "rank":
        running.wait(120).check(1)
    else:
        running.send_signal(signal.SIGKILL)
        running.wait(120)
        harness.wait_until(lambda: not harness.living_descendants(), what="the end of all")
    check_tidy(temporary)
