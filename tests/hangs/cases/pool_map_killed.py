"""As case 5, waiting for a result: Pool.map whose worker is killed (cpython#82265)."""

import multiprocessing
import os
import signal


def task(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def main() -> None:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(task, range(4), chunksize=1)  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
