"""One point of a hyper-parameter grid: trains a small net and returns how well it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

DATA = Path(__file__).resolve().parent.parent / "digits"
BATCH = 32
EPOCHS = 8


def load_split() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Images as rows of 64 values from 0 to 1, labels, and the mask of the held-out quarter."""
    images = np.load(DATA / "images.npy").reshape(-1, 64).astype(np.float32) / 16.0
    labels = np.load(DATA / "labels.npy").astype(np.int64)
    return torch.from_numpy(images), torch.from_numpy(labels), torch.arange(len(labels)) % 4 == 0


def train_one(learning_rate: float, width: int, weight_decay: float) -> dict[str, Any]:
    """Trains a net with one hidden layer; the seed is fixed, so only the arguments matter."""
    images, labels, held_out = load_split()
    inputs, targets = images[~held_out], labels[~held_out]
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
    optimizer = torch.optim.SGD(
        net.parameters(), lr=learning_rate, momentum=0.9, weight_decay=weight_decay
    )
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(inputs)).split(BATCH):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(inputs[batch]), targets[batch])
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        right = net(images[held_out]).argmax(1) == labels[held_out]
    return {
        "learning_rate": learning_rate,
        "width": width,
        "weight_decay": weight_decay,
        "loss": round(loss.item(), 4),
        "accuracy": round(right.float().mean().item(), 4),
    }
