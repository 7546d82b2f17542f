"""Workers that a DataLoader keeps find a lock held in their second epoch that was taken for a moment when they were
forked: what main has released since is held in them forever.
"""

import threading

import torch
from torch.utils.data import DataLoader, Dataset

lock = threading.Lock()
locked, forked = threading.Event(), threading.Event()


def refresh() -> None:
    with lock:
        locked.set()
        forked.wait()


class Numbers(Dataset):
    epoch = torch.zeros(1, dtype=torch.int64).share_memory_()

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.epoch.item() == 0:
            return torch.tensor(index)
        with lock:  # blocks here
            return torch.tensor(index)


if __name__ == "__main__":
    refresher = threading.Thread(target=refresh)
    refresher.start()
    locked.wait()
    numbers = Numbers()
    loader = DataLoader(numbers, num_workers=2, persistent_workers=True, multiprocessing_context="fork")
    for batch in loader:
        pass
    forked.set()
    refresher.join()
    numbers.epoch += 1
    for batch in loader:  # hangs here
        pass
    print("done", flush=True)
