"""A library reads through a thread of its own, which does not exist in the workers of a DataLoader (fsspec/gcsfs#379,
s3fs#369): they take the library's lock, which that thread held when they were forked.
"""

import queue
import threading

import torch
from torch.utils.data import DataLoader, Dataset


class Library:
    """Reads in the background, one request at a time."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.requests: queue.Queue = queue.Queue()
        self.busy = threading.Event()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            with self.lock:
                self.busy.set()
                self.requests.get()

    def read(self, index: int) -> int:
        self.busy.wait()
        with self.lock:  # blocks here
            return index


library = Library()


class Files(Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(library.read(index))


if __name__ == "__main__":
    library.busy.wait()
    for batch in DataLoader(Files(), num_workers=2, multiprocessing_context="fork"):  # hangs here
        pass
    print("done", flush=True)
