"""The digits data and the small convolutional net: shared by train.py, evaluate.py and ../grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn

HERE = Path(__file__).resolve().parent
WEIGHTS = HERE / "weights.npz"
HELD_OUT_EVERY = 4  # image i is held out of the training where i % 4 == 0


def load_data() -> tuple[np.ndarray, np.ndarray]:
    """Maps the 8x8 images (values 0 to 16), so that processes share them, and loads the labels."""
    images = np.load(HERE / "images.npy", mmap_mode="r")
    labels = np.load(HERE / "labels.npy")
    return images, labels


def held_out_mask(count: int) -> np.ndarray:
    """True for the images that training never sees."""
    return np.arange(count) % HELD_OUT_EVERY == 0


def to_tensor(images: np.ndarray) -> torch.Tensor:
    """Copies images into the float32 batch the net takes: N x 1 x 8 x 8, values 0 to 1."""
    return torch.from_numpy(images.astype(np.float32) / 16.0).unsqueeze(1)


def build_net() -> nn.Sequential:
    """A net of 9,930 parameters: two 3x3 convolutions, one pooling, one linear layer."""
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(32 * 4 * 4, 10),
    )


def save_weights(net: nn.Module, path: Path) -> None:
    """Writes the parameters as plain arrays: no pickle is needed to read them."""
    np.savez(path, **{name: value.numpy() for name, value in net.state_dict().items()})


def load_weights(path: Path = WEIGHTS) -> nn.Sequential:
    """Returns the trained net, ready to evaluate."""
    net = build_net()
    with np.load(path) as arrays:
        net.load_state_dict({name: torch.from_numpy(arrays[name]) for name in arrays.files})
    return net.eval()
