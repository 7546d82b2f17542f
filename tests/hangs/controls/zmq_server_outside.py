"""A server of ZeroMQ at a path; its client is the test, and comes late. The parent waits for the server's end."""

import multiprocessing
import sys

import zmq


def serve(path: str, ready) -> None:
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        socket.bind(f"ipc://{path}")
        ready.set()
        socket.send(socket.recv())


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    server = context.Process(target=serve, args=(sys.argv[1], ready))
    server.start()
    ready.wait()
    print("ready", flush=True)
    server.join()
    print("done")
