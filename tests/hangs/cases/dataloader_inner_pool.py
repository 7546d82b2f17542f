"""A dataset uses an executor of main's, whose threads do not exist in the workers of a DataLoader."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch.utils.data import DataLoader, Dataset

readers = ThreadPoolExecutor(2)


class Numbers(Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(readers.submit(int, index).result())  # blocks here


if __name__ == "__main__":
    list(readers.map(int, range(8)))
    for batch in DataLoader(Numbers(), num_workers=2, multiprocessing_context="fork"):  # hangs here
        pass
    print("done", flush=True)
