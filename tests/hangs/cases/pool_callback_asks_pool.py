"""A callback of a Pool waits for another result of the pool, which only the thread that runs the callback could take."""

import multiprocessing


def main() -> None:
    pool = multiprocessing.get_context("fork").Pool(2)
    result = pool.apply_async(abs, (-1,), callback=lambda value: pool.apply(abs, (value,)))
    print(result.get())  # hangs here
    print("done")


if __name__ == "__main__":
    main()
