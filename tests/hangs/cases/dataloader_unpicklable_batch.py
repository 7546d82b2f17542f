"""A worker of a DataLoader makes a batch that cannot be pickled: the thread that was to send it prints why and goes
on, and main waits for that batch forever.
"""

from torch.utils.data import DataLoader, Dataset


class Readers(Dataset):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> object:
        return (line for line in ["a", "b"])


if __name__ == "__main__":
    loader = DataLoader(Readers(), num_workers=1, collate_fn=list, multiprocessing_context="fork")
    for batch in loader:  # hangs here
        pass
    print("done", flush=True)
