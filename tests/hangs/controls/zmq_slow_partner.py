"""Processes that talk by ZeroMQ: a server that thinks before it replies, and one that idles beside its idle client."""

import multiprocessing
import sys
import time

import zmq

SECONDS = float(sys.argv[1])


def serve(port_to) -> None:
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        port_to.send(socket.bind_to_random_port("tcp://127.0.0.1"))
        for pause in (0, SECONDS, 0):
            request = socket.recv()
            time.sleep(pause)
            socket.send(request)


if __name__ == "__main__":
    ours, its = multiprocessing.Pipe()
    server = multiprocessing.get_context("fork").Process(target=serve, args=(its,))
    server.start()
    port = ours.recv()
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.connect(f"tcp://127.0.0.1:{port}")
        for pause in (0, 0, SECONDS):  # the second reply is late, the third request
            time.sleep(pause)
            socket.send(b"request")
            socket.recv()
    server.join()
    print("done")
