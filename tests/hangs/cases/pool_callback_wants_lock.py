"""A callback of a Pool wants a lock that the thread in Pool.join() holds. Results that nobody takes keep the pool busy."""

import multiprocessing
import threading

lock = threading.Lock()
results = []


def work(number: int) -> int:
    return number


def note(result: int) -> None:
    with lock:  # blocks here
        results.append(result)


if __name__ == "__main__":
    pool = multiprocessing.get_context("fork").Pool(2)
    with lock:
        for number in range(10):
            pool.apply_async(work, (number,), callback=note)
        pool.close()
        pool.join()  # hangs here
    print("done", flush=True)
