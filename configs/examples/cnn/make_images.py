"""Draws the images of this example: the same ones, to the last bit, wherever it runs.

    python3 make_images.py [--output FILE]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

COUNT, SIZE = 128, 96
SHAPES = 6  # in an image


def draw(random: np.random.Generator) -> np.ndarray:
    """One image, 3 x SIZE x SIZE: discs and bars on a noisy ground. Integers only: nothing is rounded."""
    image = random.integers(0, 64, (3, SIZE, SIZE), dtype=np.uint8)
    y, x = np.mgrid[:SIZE, :SIZE]
    for number in range(SHAPES):
        middle_y, middle_x, radius = random.integers((0, 0, 6), (SIZE, SIZE, SIZE // 3))
        color = random.integers(64, 256, 3, dtype=np.uint8)
        if number % 2:
            inside = (y - middle_y) ** 2 + (x - middle_x) ** 2 < radius**2
        else:
            inside = (abs(y - middle_y) < radius) & (abs(x - middle_x) < radius // 4 + 1)
        image[:, inside] = color[:, None]
    return image


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description="Draw the images of this example.")
    beside = Path(__file__).resolve().parent / "images.npy"
    parser.add_argument("--output", type=Path, default=beside, help="default: beside this file")
    random = np.random.default_rng(0)
    np.save(parser.parse_args().output, np.stack([draw(random) for _ in range(COUNT)]))


if __name__ == "__main__":
    main()
