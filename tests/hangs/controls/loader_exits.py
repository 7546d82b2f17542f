"""torch's DataLoader whose worker ends without a word, with exit code 0: it looks for that every five seconds."""

import os
import sys

from torch.utils.data import DataLoader, Dataset


class Exits(Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        os._exit(0)


if __name__ == "__main__":
    try:
        list(DataLoader(Exits(), num_workers=1, multiprocessing_context=sys.argv[1]))
    except RuntimeError as error:
        assert "exited unexpectedly" in str(error), error
        print("done", flush=True)
        sys.exit()
