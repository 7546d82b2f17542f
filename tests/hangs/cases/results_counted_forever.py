"""Waits until the callbacks of a pool have appended as many results as there are tasks; one task fails."""

import multiprocessing
import time

results: list[float] = []


def divide(number: int) -> float:
    return 1 / number


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for number in range(4):
            pool.apply_async(divide, (number,), callback=results.append)
        while len(results) < 4:
            time.sleep(0.5)
    print("done")
