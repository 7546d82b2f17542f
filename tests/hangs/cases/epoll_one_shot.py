"""A descriptor that was added to epoll with EPOLLONESHOT is not armed again after its first event."""

import multiprocessing
import select
import socket


def peer(connection: socket.socket) -> None:
    for _ in range(3):
        connection.sendall(b"?")
        connection.recv(1)
    connection.close()


if __name__ == "__main__":
    ours, theirs = socket.socketpair()
    child = multiprocessing.get_context("fork").Process(target=peer, args=(theirs,))
    child.start()
    theirs.close()
    poll = select.epoll()
    poll.register(ours, select.EPOLLIN | select.EPOLLONESHOT)
    while poll.poll():  # hangs here
        if not ours.recv(1):
            break
        ours.sendall(b"!")
    child.join()
    print("done")
