"""Under the fork server, the default since Python 3.14: a Pool's task calls os._exit(), so its worker never answers."""

import multiprocessing
import os


def task() -> None:
    os._exit(3)


def main() -> None:
    pool = multiprocessing.get_context("forkserver").Pool(2)
    pool.apply_async(task)
    pool.close()
    pool.join()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
