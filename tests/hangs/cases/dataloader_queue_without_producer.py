"""The worker of a DataLoader gets one item more than its producer, which has ended and was not joined, has put."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.multiprocessing
from torch.utils.data import DataLoader, IterableDataset

context = torch.multiprocessing.get_context("fork")


def produce(queue) -> None:
    for number in range(3):
        queue.put(number)


class Items(IterableDataset):
    def __init__(self, queue) -> None:
        self.queue = queue

    def __iter__(self) -> Iterator[int]:
        while (item := self.queue.get()) is not None:  # blocks here
            yield item


if __name__ == "__main__":
    queue = context.Queue()
    batches = iter(DataLoader(Items(queue), num_workers=1, multiprocessing_context="fork"))
    producer = context.Process(target=produce, args=(queue,))
    producer.start()
    for batch in batches:  # hangs here
        print(batch, flush=True)
    producer.join()
    print("done", flush=True)
