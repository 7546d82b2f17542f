"""The callback of a Pool puts results into a queue with room for two, from which main takes them after Pool.join()."""

import multiprocessing
import queue


def work(number: int) -> int:
    return number


if __name__ == "__main__":
    results: "queue.Queue[int]" = queue.Queue(maxsize=2)
    pool = multiprocessing.get_context("fork").Pool(2)
    for number in range(10):
        pool.apply_async(work, (number,), callback=results.put)
    pool.close()
    pool.join()  # hangs here
    print("done", flush=True)
