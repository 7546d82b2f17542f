"""Case 1: a Pool forked by a process that has used OpenMP (pytorch#17199, numpy#5752)."""

import multiprocessing

import torch

SIZE = 1_000_000  # large enough for two threads


def total(_task: int) -> int:
    print("second region", flush=True)
    return int(torch.arange(SIZE).add(1).sum())


def main() -> None:
    torch.set_num_threads(2)
    print("first region", flush=True)
    expected = int(torch.arange(SIZE).add(1).sum())
    pool = multiprocessing.get_context("fork").Pool(2)
    results = pool.map_async(total, range(4), chunksize=1)
    pool.close()
    pool.join()  # hangs here
    assert results.get() == [expected] * 4
    assert int(torch.arange(SIZE).add(1).sum()) == expected  # the parent still has its threads
    print("done", flush=True)


if __name__ == "__main__":
    main()
