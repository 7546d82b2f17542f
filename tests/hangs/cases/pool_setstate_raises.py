"""A result can be pickled but not unpickled: it ends the thread that takes the pool's results, and another spins."""

import multiprocessing


class Result:
    def __init__(self, number: int) -> None:
        self.number = number

    def __setstate__(self, state: dict) -> None:
        raise ValueError("of another version")


def work(number: int) -> Result:
    return Result(number)


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, range(4)))  # hangs here
    print("done", flush=True)
