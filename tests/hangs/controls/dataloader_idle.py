"""torch's DataLoader with workers that stay and have nothing to do while main thinks."""

import sys
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    loader = DataLoader(
        TensorDataset(torch.arange(4)),
        num_workers=2,
        multiprocessing_context="fork",
        persistent_workers=True,
    )
    for _epoch in range(2):
        assert [int(batch) for (batch,) in loader] == [0, 1, 2, 3]
        time.sleep(seconds)
    print("done", flush=True)
