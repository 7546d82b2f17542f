"""A parent accepts a connection of a child that dies before it connects (multiprocessing.connection.Listener)."""

import multiprocessing
import multiprocessing.connection
import os
import signal


def work(address: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)  # before Client(address)


def main() -> None:
    with multiprocessing.connection.Listener(family="AF_UNIX") as listener:
        child = multiprocessing.get_context("fork").Process(target=work, args=(listener.address,))
        child.start()
        print(listener.accept().recv())  # hangs here
        child.join()
    print("done", flush=True)


if __name__ == "__main__":
    main()
