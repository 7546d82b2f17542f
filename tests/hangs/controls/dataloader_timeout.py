"""A DataLoader whose worker hangs, with a limit of time that copes."""

import multiprocessing
import os
import sys
import threading

import torch
import torch.utils.data


class Numbers(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        if index == 2:
            threading.Event().wait()
        return index


if __name__ == "__main__":
    numbers = iter(torch.utils.data.DataLoader(Numbers(), num_workers=1, timeout=float(sys.argv[1])))
    try:
        while True:
            next(numbers)
    except RuntimeError:
        print("done", flush=True)
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(0)
