"""torch's DataLoader with two workers that need long for each batch."""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 10


class SlowNumbers(Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(SECONDS)
        return torch.tensor(index)


if __name__ == "__main__":
    loader = DataLoader(SlowNumbers(), num_workers=2, multiprocessing_context="fork")
    assert [int(batch) for batch in loader] == [0, 1, 2, 3]
    print("done", flush=True)
