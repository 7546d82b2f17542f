"""A parent accepts a connection of its second child, which comes late; the first was killed before it connected."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time


def work(address: str, seconds: float) -> None:
    if seconds == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(seconds)
    with multiprocessing.connection.Client(address) as parent:
        parent.send("hello")


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with multiprocessing.connection.Listener(family="AF_UNIX") as listener:
        children = [context.Process(target=work, args=(listener.address, seconds)) for seconds in (0, float(sys.argv[1]))]
        for child in children:
            child.start()
        assert listener.accept().recv() == "hello"
        for child in children:
            child.join()
    print("done")
