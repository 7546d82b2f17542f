"""A child reads from a socket whose peer never writes, but with a receive timeout (SO_RCVTIMEO)."""

import multiprocessing
import socket
import struct
import sys


def receive(connection: socket.socket, seconds: float) -> None:
    timeout = struct.pack("ll", int(seconds), int(1e6 * (seconds % 1)))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)
    try:
        connection.recv(1)
    except BlockingIOError:
        return
    raise AssertionError("received something")


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    mine, other = socket.socketpair()
    process = multiprocessing.get_context("fork").Process(target=receive, args=(other, seconds))
    process.start()
    process.join()
    assert process.exitcode == 0
    print("done", flush=True)
