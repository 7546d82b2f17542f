"""Two workers of a DataLoader take two locks that they share in opposite orders (pytorch#21554)."""

import multiprocessing

import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __init__(self) -> None:
        context = multiprocessing.get_context("fork")
        self.locks = [context.Lock(), context.Lock()]
        self.both = context.Barrier(2)

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> torch.Tensor:
        with self.locks[index]:
            self.both.wait()
            with self.locks[1 - index]:
                return torch.tensor(index)


if __name__ == "__main__":
    for batch in DataLoader(Numbers(), num_workers=2, multiprocessing_context="fork"):  # hangs here
        pass
    print("done", flush=True)
