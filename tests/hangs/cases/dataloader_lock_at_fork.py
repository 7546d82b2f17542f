"""A DataLoader's workers take a lock that another thread held when they were forked (pytorch#1355); main looks
every five seconds whether they are alive, and they are.
"""

import threading

import torch
from torch.utils.data import DataLoader, Dataset

lock = threading.Lock()
locked = threading.Event()


def prefetch() -> None:
    with lock:
        locked.set()
        threading.Event().wait()


class Numbers(Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        with lock:  # blocks here
            return torch.tensor(index)


if __name__ == "__main__":
    threading.Thread(target=prefetch, daemon=True).start()
    locked.wait()
    loader = DataLoader(Numbers(), num_workers=2, multiprocessing_context="fork")
    for batch in loader:  # hangs here
        print(batch)
    print("done", flush=True)
