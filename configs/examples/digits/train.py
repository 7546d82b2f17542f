"""Trains the digits net from a fixed seed and saves weights.npz. Takes a few seconds.

    python3 train.py [--output FILE] [--epochs N]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn

from model import WEIGHTS, build_net, held_out_mask, load_data, save_weights, to_tensor

BATCH = 64


def train(images: torch.Tensor, labels: torch.Tensor, epochs: int) -> nn.Sequential:
    """Returns the trained net: the same one for the same data and library versions."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # sums in one order, so that the seed decides everything
    net = build_net().train()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(images[batch]), labels[batch]).backward()
            optimizer.step()
        schedule.step()
    return net.eval()


def accuracy(net: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of images whose digit the net names."""
    with torch.no_grad():
        return (net(images).argmax(1) == labels).float().mean().item()


def main() -> None:
    """Trains on three quarters of the images, prints both accuracies, saves the weights."""
    parser = argparse.ArgumentParser(description="Train the digits net from a fixed seed.")
    parser.add_argument(
        "--output",
        type=Path,
        default=WEIGHTS,
        help="where the weights go (default: beside this file)",
    )
    parser.add_argument("--epochs", type=int, default=30)
    options = parser.parse_args()

    pixels, digits = load_data()
    images, labels = to_tensor(pixels), torch.from_numpy(digits.astype(np.int64))
    held_out = torch.from_numpy(held_out_mask(len(images)))
    net = train(images[~held_out], labels[~held_out], options.epochs)
    print(f"training accuracy {accuracy(net, images[~held_out], labels[~held_out]):.4f}")
    print(f"held-out accuracy {accuracy(net, images[held_out], labels[held_out]):.4f}")
    save_weights(net, options.output)


if __name__ == "__main__":
    main()
