"""A child waits for the answer of a server at the AF_UNIX socket whose path it is given."""

import multiprocessing
import socket
import sys


def ask(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        print("ready", flush=True)
        assert connection.recv(3) == b"go\n"


if __name__ == "__main__":
    process = multiprocessing.get_context("fork").Process(target=ask, args=(sys.argv[1],))
    process.start()
    process.join()
    assert process.exitcode == 0
    print("done", flush=True)
