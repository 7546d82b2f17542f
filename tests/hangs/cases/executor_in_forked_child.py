"""Case 15: the thread of a ThreadPoolExecutor, used by the parent, is not in the child (more-executors#140)."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

executor = ThreadPoolExecutor(max_workers=1)


def work() -> None:
    executor.submit(pow, 2, 10).result()  # blocks here


def main() -> None:
    assert executor.submit(pow, 2, 10).result() == 1024
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
