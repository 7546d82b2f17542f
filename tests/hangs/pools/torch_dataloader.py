"""torch's DataLoader with two worker processes, by fork, whose data set uses OpenMP."""

import after_fork
from torch.utils.data import DataLoader, Dataset


class Answers(Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, _index: int) -> bool:
        return after_fork.works()


if __name__ == "__main__":
    after_fork.warm_up()
    loader = DataLoader(Answers(), batch_size=2, num_workers=2, multiprocessing_context="fork")
    for _epoch in range(2):
        answers = [bool(answer) for batch in loader for answer in batch]
        assert answers == [True] * 8
    after_fork.report()
