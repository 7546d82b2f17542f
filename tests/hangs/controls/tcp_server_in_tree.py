"""A server waits for its client, both processes of ours; then the client waits for the server's slow answer."""

import multiprocessing
import socket
import sys
import time


def ask(port: int, seconds: float) -> None:
    time.sleep(seconds)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        assert connection.recv(6) == b"answer"


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    with socket.create_server(("127.0.0.1", 0)) as server:
        arguments = (server.getsockname()[1], seconds)
        client = multiprocessing.get_context("fork").Process(target=ask, args=arguments)
        client.start()
        connection, _ = server.accept()
        time.sleep(seconds)
        connection.sendall(b"answer")
        connection.close()
        client.join()
    assert client.exitcode == 0
    print("done", flush=True)
