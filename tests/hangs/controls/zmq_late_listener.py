"""A context of ZeroMQ ends once its message is sent, to a process that listens only after a while."""

import multiprocessing
import socket
import sys
import time

import zmq


def receive(port: int, seconds: float) -> None:
    time.sleep(seconds)
    with zmq.Context() as context, context.socket(zmq.PULL) as receiver:
        receiver.bind(f"tcp://127.0.0.1:{port}")
        receiver.recv()


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    child = multiprocessing.get_context("fork").Process(target=receive, args=(port, float(sys.argv[1])))
    child.start()
    context = zmq.Context()
    sender = context.socket(zmq.PUSH)
    sender.connect(f"tcp://127.0.0.1:{port}")
    sender.send(b"late")
    sender.close()
    context.term()
    child.join()
    print("done")
