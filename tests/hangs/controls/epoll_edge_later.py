"""What an edge-triggered reader has left unread is read when more comes, some seconds later."""

import multiprocessing
import select
import socket
import sys
import time


def send(reader: socket.socket, seconds: float) -> None:
    reader.sendall(b"x" * 100)
    time.sleep(seconds)
    reader.sendall(b"x" * 100)
    assert reader.recv(1) == b"!"


if __name__ == "__main__":
    ours, theirs = socket.socketpair()
    sender = multiprocessing.get_context("fork").Process(target=send, args=(theirs, float(sys.argv[1])))
    sender.start()
    events = select.epoll()
    events.register(ours, select.EPOLLIN | select.EPOLLET)
    events.poll()
    left = 200 - len(ours.recv(50))
    while left > 0:
        events.poll()
        left -= len(ours.recv(200))
    ours.send(b"!")
    sender.join()
    print("done")
