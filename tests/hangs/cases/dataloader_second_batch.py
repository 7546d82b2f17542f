"""A DataLoader's workers take a lock that another thread held when they were forked, with their second batch
(pytorch#75147): by then each has a thread of its own, which sends what it has made.
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
        return 12

    def __getitem__(self, index: int) -> torch.Tensor:
        if index < 4:  # one batch for each worker
            return torch.tensor(index)
        with lock:  # blocks here
            return torch.tensor(index)


if __name__ == "__main__":
    threading.Thread(target=prefetch, daemon=True).start()
    locked.wait()
    loader = DataLoader(Numbers(), batch_size=2, num_workers=2, multiprocessing_context="fork")
    for batch in loader:  # hangs here
        pass
    print("done", flush=True)
