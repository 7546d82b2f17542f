"""A thread waits in accept() when another one closes the socket, and then waits for the thread."""

import platform
import socket
import threading
from pathlib import Path

ACCEPT4 = {"x86_64": "288", "aarch64": "242"}[platform.machine()]


def serve(server: socket.socket) -> None:
    server.accept()  # blocks here


if __name__ == "__main__":
    server = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve, args=(server,))
    thread.start()
    while Path(f"/proc/self/task/{thread.native_id}/syscall").read_text().split()[0] != ACCEPT4:
        pass  # only the kernel knows that the call has begun
    server.close()
    thread.join()  # hangs here
    print("done")
