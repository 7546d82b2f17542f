"""A child is stopped; a process outside continues it."""

import multiprocessing
import os
import signal


def stop() -> None:
    print("ready", os.getpid(), flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)


if __name__ == "__main__":
    process = multiprocessing.get_context("fork").Process(target=stop)
    process.start()
    process.join()
    assert process.exitcode == 0
    print("done", flush=True)
