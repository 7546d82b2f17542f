"""Has its stacks printed when SIGUSR1 comes, to find out where it hangs: in a lock that was held at the fork."""

import faulthandler
import multiprocessing
import signal
import threading

lock = threading.Lock()


def work() -> None:
    with lock:
        print("never")


if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1)
    lock.acquire()
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()  # hangs here
    print("done")
