"""The workers of a DataLoader put timings into a bounded queue, which main reads only after the epoch."""

import time

import torch
import torch.multiprocessing
from torch.utils.data import DataLoader, Dataset

timings = torch.multiprocessing.get_context("fork").Queue(maxsize=4)


class Numbers(Dataset):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        timings.put((index, time.time()))  # blocks here
        return torch.ones(3) * index


if __name__ == "__main__":
    loader = DataLoader(Numbers(), batch_size=2, num_workers=2, multiprocessing_context="fork")
    for batch in loader:  # hangs here
        pass
    while not timings.empty():
        timings.get()
    print("done")
