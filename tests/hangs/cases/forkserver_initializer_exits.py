"""Under the fork server, the default since Python 3.14: a Pool's initializer ends its worker, which is replaced for ever."""

import multiprocessing
import os


def prepare() -> None:
    os._exit(1)  # no such device


def main() -> None:
    pool = multiprocessing.get_context("forkserver").Pool(2, initializer=prepare)
    # The size of chunks is given, or map() would divide by the number of workers, which may be 0.
    pool.map(abs, range(4), chunksize=1)  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
