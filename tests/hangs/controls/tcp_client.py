"""A client waits for the answer of a server at the port that it is given."""

import socket
import sys

if __name__ == "__main__":
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
        print("ready", flush=True)
        assert connection.recv(3) == b"go\n"
    print("done", flush=True)
