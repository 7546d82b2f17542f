"""Evaluates the digits net batch by batch. Plain Python: runs without mprun too.

    mprun job.json
    mprun logits.json
    python3 evaluate.py
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch

from model import held_out_mask, load_data, load_weights, to_tensor

BATCH = 64  # the step of job.json's range

_images: np.ndarray
_labels: np.ndarray
_held_out: np.ndarray
_net: torch.nn.Module


def setup() -> None:
    """Loads images and net and evaluates one batch: forked workers start with a warm torch."""
    global _images, _labels, _held_out, _net
    _images, _labels = load_data()
    _held_out = held_out_mask(len(_images))
    _net = load_weights()
    evaluate(0)


def evaluate(start: int) -> dict[str, Any]:
    """Classifies one batch; the digest shows whether two runs agree to the last bit."""
    batch = slice(start, start + BATCH)
    with torch.no_grad():
        logits = _net(to_tensor(_images[batch])).numpy()
    predictions = logits.argmax(axis=1)
    correct = predictions == _labels[batch]
    held_out = _held_out[batch]
    return {
        "start": start,
        "predictions": predictions.tolist(),
        "correct": int(correct.sum()),
        "held_out_correct": int((correct & held_out).sum()),
        "held_out": int(held_out.sum()),
        "logits_sha256": hashlib.sha256(logits.tobytes()).hexdigest(),
    }


def logits(images: np.ndarray) -> torch.Tensor:
    """The net's raw outputs for a batch of images; mprun gathers those of all batches in one file."""
    with torch.no_grad():
        return _net(to_tensor(images))


def main() -> None:
    """The whole job in this one process."""
    setup()
    results = [evaluate(start) for start in range(0, len(_images), BATCH)]
    print(f"accuracy {sum(result['correct'] for result in results) / len(_images):.4f}")


if __name__ == "__main__":
    main()
