"""Workers of a DataLoader inherit a lock that was taken for a moment, in a program that has also started a service.

The service, such as one that sends metrics, works on. It has nothing to do with the workers, but torch's handler for
the end of a child would run at its end, too.
"""

import subprocess
import sys
import threading

import torch
from torch.utils.data import DataLoader, Dataset

SERVE = "import time\nwhile True: time.sleep(0.5)"  # wakes up now and then, for nothing that the program waits for

lock = threading.Lock()
locked, forked = threading.Event(), threading.Event()


def refresh() -> None:
    with lock:
        locked.set()
        forked.wait()


class Numbers(Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        if index > 1:
            with lock:  # blocks here
                return torch.tensor(index)
        return torch.tensor(index)


if __name__ == "__main__":
    refresher = threading.Thread(target=refresh)
    refresher.start()
    locked.wait()
    with subprocess.Popen([sys.executable, "-c", SERVE]):
        loader = iter(DataLoader(Numbers(), num_workers=2, multiprocessing_context="fork"))
        forked.set()
        refresher.join()
        for batch in loader:  # hangs here
            pass
        print("done", flush=True)
