"""A server's thread and a client of the same process each wait for the other's greeting."""

import socket
import threading


def serve(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.recv(1)  # blocks here
        connection.sendall(b"welcome")


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,)).start()
        with socket.create_connection(listener.getsockname()) as client:
            client.recv(7)  # hangs here
    print("done")
