"""Case 5: a Pool's worker is killed in its task; the Pool never notices (cpython#66587)."""

import multiprocessing
import os
import signal


def task() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    pool = multiprocessing.get_context("fork").Pool(2)
    pool.apply_async(task)
    pool.close()
    pool.join()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
