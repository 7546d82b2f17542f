"""What tests/bench/evaluation.py evaluates: the net of configs/examples/digits, by mprun and its peers alike.

As a script it is a rank: it evaluates its share, split before the start.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "configs/examples/digits"))
import evaluate as digits  # noqa: E402

BATCH = 64
IMAGES = "BENCH_IMAGES"  # the variable that names the .npy file; mprun's workers receive its rows

setup = digits.setup  # loads the net and evaluates one batch
logits = digits.logits

_images: numpy.ndarray | None = None


def images() -> numpy.ndarray:
    """All images, mapped; a new process also loads the net."""
    global _images
    if _images is None:
        setup()
        _images = numpy.load(os.environ[IMAGES], mmap_mode="r")
    return _images


def logits_of(begin: int) -> numpy.ndarray:
    """The batch that begins at the given image."""
    return logits(images()[begin : begin + BATCH]).numpy()


def evaluate_share() -> None:
    """A rank."""
    import mprun

    share = len(images()) // mprun.world_size()
    begin = mprun.rank() * share
    parts = [logits_of(at) for at in range(begin, begin + share, BATCH)]
    mprun.result({"logits": numpy.concatenate(parts)})


if __name__ == "__main__":
    evaluate_share()
