"""The same between a client and a server of TCP, whose reads are too short for what comes at once."""

import multiprocessing
import select
import socket

QUESTION = b"x" * 8192


def ask(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as server:
        server.sendall(QUESTION)
        server.recv(1)  # blocks here


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    client = multiprocessing.get_context("fork").Process(target=ask, args=listener.getsockname()[1:])
    client.start()
    connection, _ = listener.accept()
    connection.recv(len(QUESTION), socket.MSG_PEEK | socket.MSG_WAITALL)  # all of it has come
    events = select.epoll()
    events.register(connection, select.EPOLLIN | select.EPOLLET)
    left = len(QUESTION)
    while left > 0:
        events.poll()  # hangs here
        left -= len(connection.recv(1024))
    connection.send(b"!")
    client.join()
    print("done", flush=True)


if __name__ == "__main__":
    main()
