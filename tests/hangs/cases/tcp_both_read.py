"""Two processes at the ends of a connection, and each waits for what the other has to say."""

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
