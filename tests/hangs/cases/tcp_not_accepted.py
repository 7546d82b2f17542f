"""A child waits for an answer on a connection that its parent never accepts."""

import multiprocessing
import socket
import sys


def client(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.recv(1)  # blocks here


if __name__ == "__main__":
    server = socket.create_server(("127.0.0.1", 0))
    child = multiprocessing.get_context(sys.argv[1]).Process(target=client, args=(server.getsockname()[1],))
    child.start()
    child.join()  # hangs here
    print("done")
