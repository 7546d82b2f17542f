"""Two processes at the ends of a connection both send more than it holds before they read (IPv6)."""

import multiprocessing
import socket

MUCH = b"x" * 50_000_000


def client(port: int) -> None:
    with socket.create_connection(("::1", port)) as connection:
        connection.sendall(MUCH)  # blocks here


if __name__ == "__main__":
    server = socket.create_server(("::1", 0), family=socket.AF_INET6)
    child = multiprocessing.get_context("fork").Process(target=client, args=(server.getsockname()[1],))
    child.start()
    connection, _ = server.accept()
    server.close()
    connection.sendall(MUCH)  # hangs here
    print("done")
