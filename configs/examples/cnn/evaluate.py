"""Evaluates torchvision's ResNet-18, with weights from a seed, on batches of images. Runs without mprun, too.

    mprun job.json
    python3 evaluate.py [LOGITS.npy]    # in this one process; with a file: are they the same, bit for bit?
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
import torchvision

IMAGES = Path(__file__).resolve().parent / "images.npy"
BATCH = 8  # as in job.json: a sum may be rounded otherwise in a batch of another length
CLASSES = 10

_net: torch.nn.Module


def setup() -> None:
    """Builds the net: the same one in every process."""
    global _net
    torch.manual_seed(0)
    _net = torchvision.models.resnet18(weights=None, num_classes=CLASSES).eval()


def evaluate(images: np.ndarray) -> dict[str, torch.Tensor]:
    """The net's raw outputs for a batch of images; mprun gathers those of all batches in tensors/logits.npy."""
    with torch.no_grad():
        return {"logits": _net(torch.from_numpy(images.astype(np.float32) / 255))}


def main() -> int:
    """The whole job in this one process; 1: the file that was given holds something else."""
    torch.set_num_threads(1)
    setup()
    images = np.load(IMAGES, mmap_mode="r")
    batches = (images[begin : begin + BATCH] for begin in range(0, len(images), BATCH))
    logits = torch.cat([evaluate(batch)["logits"] for batch in batches]).numpy()
    print(f"{len(logits)} images, logits from {logits.min():.3f} to {logits.max():.3f}")
    if len(sys.argv) > 1:
        gathered = np.load(sys.argv[1])
        alike = gathered.shape == logits.shape and gathered.tobytes() == logits.tobytes()
        print("the same, bit for bit" if alike else "they differ")
        return 0 if alike else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
