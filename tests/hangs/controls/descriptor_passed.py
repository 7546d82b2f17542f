"""Main reads from a pipe of its own, whose writing end it has passed to a process outside."""

import os
import socket
import sys

if __name__ == "__main__":
    readable, writable = os.pipe()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        socket.send_fds(connection, [b"!"], [writable])
        connection.recv(1)  # it has been received
    print("ready", flush=True)
    assert os.read(readable, 1) == b"x"
    print("done", flush=True)
