"""A server's thread and a client of the same process read from each other; a child greets the server late."""

import os
import socket
import sys
import threading
import time


def serve(connection: socket.socket) -> None:
    assert connection.recv(5) == b"hello"
    connection.sendall(b"welcome")


if __name__ == "__main__":
    server, client = socket.socketpair()
    if os.fork() == 0:
        server.close()
        time.sleep(float(sys.argv[1]))  # longer than a hang needs to be proved
        client.sendall(b"hello")
        os._exit(0)
    thread = threading.Thread(target=serve, args=(server,))
    thread.start()
    assert client.recv(7) == b"welcome"
    thread.join()
    os.wait()
    print("done", flush=True)
