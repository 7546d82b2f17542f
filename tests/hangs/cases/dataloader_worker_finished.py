"""One worker of a DataLoader has given all its items and has ended; the other one waits for an item of its own queue."""

from __future__ import annotations

from collections.abc import Iterator

import torch.multiprocessing
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Items(IterableDataset):
    def __init__(self) -> None:
        self.more = torch.multiprocessing.get_context("fork").Queue()

    def __iter__(self) -> Iterator[int]:
        yield 1
        if get_worker_info().id == 1:
            yield self.more.get()  # blocks here


if __name__ == "__main__":
    for batch in DataLoader(Items(), num_workers=2, multiprocessing_context="fork"):  # hangs here
        print(batch, flush=True)
    print("done", flush=True)
