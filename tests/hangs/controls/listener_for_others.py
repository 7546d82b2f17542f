"""A server whose thread accepts connections of other programs: they know its key and its address, the default one."""

import multiprocessing.connection
import sys
import tempfile
import threading

tempfile.tempdir = "/tmp"  # a socket's path has 107 characters at most


def serve(listener: multiprocessing.connection.Listener) -> None:
    with listener.accept() as client:
        assert client.recv() == "stop"


if __name__ == "__main__":
    with multiprocessing.connection.Listener(authkey=b"key") as listener:
        with open(sys.argv[1], "w") as file:
            file.write(str(listener.address))
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        print("ready", flush=True)
        thread.join()
    print("done", flush=True)
