"""Training in memory that all processes share.

    mprun job.json      # ranks that step through one model at the same time, without any lock
    mprun folds.json    # tasks that train a model each, in rows of their own: cross-validation
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import mprun

DATA = Path(__file__).resolve().parent.parent / "digits"
FOLDS = 6
EPOCHS = 10


def load_digits() -> tuple[torch.Tensor, torch.Tensor]:
    """All images as rows of 64 numbers from 0 to 1, and their labels."""
    images = np.load(DATA / "images.npy").reshape(-1, 64).astype(np.float32) / 16.0
    labels = np.load(DATA / "labels.npy").astype(np.int64)
    return torch.from_numpy(images), torch.from_numpy(labels)


def classifier(weight: np.ndarray, bias: np.ndarray) -> nn.Linear:
    """A linear classifier whose parameters are these arrays: its optimizer writes into them."""
    model = nn.Linear(64, 10)
    model.weight = nn.Parameter(torch.from_numpy(weight))
    model.bias = nn.Parameter(torch.from_numpy(bias))
    return model


def train(model: nn.Linear, images: torch.Tensor, labels: torch.Tensor) -> None:
    """Stochastic gradient descent, in batches of a new order in each epoch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images)).split(16):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()


def accuracy(model: nn.Linear, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of the images that it classifies correctly."""
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def train_without(fold: int) -> dict[str, Any]:
    """A task: trains on all folds but this one, and tests with this one."""
    images, labels = load_digits()
    held_out = torch.arange(len(images)) % FOLDS == fold
    model = classifier(mprun.shared["weights"][fold], mprun.shared["biases"][fold])
    with torch.no_grad():
        model.weight.zero_()  # an attempt before this one may have died half-way
        model.bias.zero_()
    train(model, images[~held_out], labels[~held_out])
    return {"fold": fold, "accuracy": accuracy(model, images[held_out], labels[held_out])}


def main() -> None:
    """A rank: trains the one model on its share of the images, at the same time as all others (Hogwild)."""
    rank, ranks = mprun.rank(), mprun.world_size()
    torch.manual_seed(rank)
    images, labels = load_digits()
    held_out = torch.arange(len(images)) % FOLDS == 0
    mine = (torch.arange(len(images)) % ranks == rank) & ~held_out
    model = classifier(mprun.shared["weight"], mprun.shared["bias"])
    train(model, images[mine], labels[mine])
    share_correct = accuracy(model, images[held_out], labels[held_out])
    print(f"rank {rank} of {ranks}: {share_correct:.3f} of the held-out images are right")
    mprun.result({"rank": rank, "accuracy": share_correct})


if __name__ == "__main__":
    main()
