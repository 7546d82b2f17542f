"""A client of ZeroMQ waits for the reply of a server that waits for something else (pyzmq#102)."""

import multiprocessing
import threading

import zmq


def serve(address) -> None:
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        address.send(socket.bind_to_random_port("tcp://127.0.0.1"))
        socket.recv()
        threading.Event().wait()  # blocks here


if __name__ == "__main__":
    ours, its = multiprocessing.Pipe()
    server = multiprocessing.get_context("fork").Process(target=serve, args=(its,))
    server.start()
    port = ours.recv()
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.connect(f"tcp://127.0.0.1:{port}")
        socket.send(b"request")
        socket.recv()  # hangs here
    server.join()
    print("done")
