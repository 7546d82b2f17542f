"""A child reads from a pipe whose write end no process holds: it is on its way through a socket, and is taken from
there later.
"""

import multiprocessing
import os
import socket
import sys
import time


def receive_and_write(connection: socket.socket, seconds: float) -> None:
    time.sleep(seconds)
    sink = socket.recv_fds(connection, 1, 1)[1][0]
    os.write(sink, b"x")


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    context = multiprocessing.get_context("fork")
    sender, receiver = socket.socketpair()
    writer = context.Process(target=receive_and_write, args=(receiver, seconds))
    writer.start()
    source, sink = os.pipe()
    socket.send_fds(sender, [b"x"], [sink])
    os.close(sink)
    reader = context.Process(target=os.read, args=(source, 1))
    reader.start()
    reader.join()
    writer.join()
    assert reader.exitcode == writer.exitcode == 0
    print("done", flush=True)
