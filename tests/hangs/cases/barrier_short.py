"""Case 13: one rank ends before the barrier that the other waits at (as in cpython#123899)."""

import multiprocessing
from multiprocessing.synchronize import Barrier


def work(rank: int, barrier: Barrier) -> None:
    if rank == 0:
        return  # has no data
    barrier.wait()  # blocks here


def main() -> None:
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(2)
    ranks = [context.Process(target=work, args=(rank, barrier)) for rank in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
