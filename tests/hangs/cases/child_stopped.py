"""Case 19: a child stops itself, as job control does, and no process continues it."""

import multiprocessing
import os
import signal


def work() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def main() -> None:
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
