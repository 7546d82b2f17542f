"""Case 6: a Pool's task calls sys.exit(): its worker ends without an answer (uqfoundation/multiprocess#220)."""

import multiprocessing
import sys


def task() -> None:
    sys.exit(3)


def main() -> None:
    pool = multiprocessing.get_context(sys.argv[1]).Pool(2)
    pool.apply_async(task)
    pool.close()
    pool.join()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
