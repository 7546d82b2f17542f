"""A child serves and waits for a client; only a process outside will connect."""

import multiprocessing
import socket


def serve(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        assert connection.recv(3) == b"go\n"


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = multiprocessing.get_context("fork").Process(target=serve, args=(server,))
        process.start()
        print("ready", server.getsockname()[1], flush=True)
        process.join()
    assert process.exitcode == 0
    print("done", flush=True)
