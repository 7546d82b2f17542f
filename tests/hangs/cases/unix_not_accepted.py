"""A child waits for an answer on a connection that its parent, which waits for the child's end, never accepts."""

import multiprocessing
import multiprocessing.connection


def ask(address: str) -> None:
    with multiprocessing.connection.Client(address) as connection:
        connection.recv()


if __name__ == "__main__":
    with multiprocessing.connection.Listener(family="AF_UNIX") as listener:
        child = multiprocessing.get_context("fork").Process(target=ask, args=(listener.address,))
        child.start()
        child.join()  # hangs here
        print(listener.accept().recv())
