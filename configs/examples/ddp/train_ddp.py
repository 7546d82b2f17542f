"""Data-parallel training with gloo: each rank trains on its share, all end with equal nets.

    mprun job.json
    torchrun --nproc_per_node 2 train_ddp.py      # the same script, unchanged
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

try:
    import mprun
except ImportError:  # started by torchrun
    mprun = None

DATA = Path(__file__).resolve().parent.parent / "digits"
STEPS = 20


def load_share(rank: int, world_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Every world_size-th image and label, beginning at `rank`; all shares are equally long."""
    images = np.load(DATA / "images.npy").reshape(-1, 64).astype(np.float32) / 16.0
    labels = np.load(DATA / "labels.npy").astype(np.int64)
    end = len(labels) // world_size * world_size
    share = slice(rank, end, world_size)
    return torch.from_numpy(images[share]), torch.from_numpy(labels[share])


def digest(net: nn.Module) -> str:
    """A fingerprint of all parameters, to the last bit."""
    parameters = np.concatenate([value.detach().numpy().ravel() for value in net.parameters()])
    return hashlib.sha256(parameters.tobytes()).hexdigest()


def main() -> None:
    """Trains for a few steps; rank, world size and address come from the environment."""
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)  # nets begin different: DistributedDataParallel sends rank 0's to all
    net = DistributedDataParallel(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    images, labels = load_share(rank, world_size)

    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()  # averages the gradients of all ranks
        optimizer.step()
        losses.append(loss.item())
    dist.destroy_process_group()

    print(f"rank {rank} of {world_size}: loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    if mprun:
        mprun.result(
            {
                "rank": rank,
                "world_size": world_size,
                "first_loss": losses[0],
                "last_loss": losses[-1],
                "parameters_sha256": digest(net),
            }
        )


if __name__ == "__main__":
    main()
