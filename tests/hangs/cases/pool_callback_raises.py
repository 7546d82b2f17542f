"""A callback raises in the thread that takes the pool's results (cpython#83371): it ends, and no result is taken any more."""

import multiprocessing


def work(number: int) -> int:
    return number


def callback(number: int) -> None:
    raise ValueError(number)


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.apply_async(work, (1,), callback=callback)
        pool.apply_async(work, (2,))
        pool.close()
        pool.join()  # hangs here
    print("done", flush=True)
