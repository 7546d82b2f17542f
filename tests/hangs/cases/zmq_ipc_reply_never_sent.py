"""A client of ZeroMQ waits at a socket of the file system for a reply of a server that waits for the client's end."""

import multiprocessing
import tempfile

import zmq


def ask(address: str) -> None:
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.connect(address)
        socket.send(b"request")
        socket.recv()  # blocks here


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        address = f"ipc://{folder}/socket"
        with zmq.Context() as context, context.socket(zmq.REP) as socket:
            socket.bind(address)
            client = multiprocessing.get_context("fork").Process(target=ask, args=(address,))
            client.start()
            socket.recv()
            client.join()  # hangs here
    print("done")
