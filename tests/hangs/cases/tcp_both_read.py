"""Two processes at the ends of a connection each wait for a message of the other."""

import multiprocessing
import socket


def client(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.recv(1)  # blocks here


if __name__ == "__main__":
    server = socket.create_server(("127.0.0.1", 0))
    child = multiprocessing.get_context("fork").Process(target=client, args=(server.getsockname()[1],))
    child.start()
    connection, _ = server.accept()
    server.close()
    connection.recv(1)  # hangs here
    print("done")
