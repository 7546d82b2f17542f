"""A child takes a signal by sigwait; its parent joins it, and only a process outside sends the signal."""

import multiprocessing
import os
import signal


def wait_for_signal() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    print("ready", os.getpid(), flush=True)
    assert signal.sigwait([signal.SIGUSR1]) == signal.SIGUSR1


if __name__ == "__main__":
    process = multiprocessing.get_context("fork").Process(target=wait_for_signal)
    process.start()
    process.join()
    assert process.exitcode == 0
    print("done", flush=True)
