"""A manager that other programs connect to: they know its key and its address, which is multiprocessing's default."""

import multiprocessing
import sys
import tempfile
import threading
from multiprocessing.managers import BaseManager

tempfile.tempdir = "/tmp"  # a socket's path has 107 characters at most
finished = threading.Event()


class Manager(BaseManager):
    pass


Manager.register("finish", callable=finished.set)
Manager.register("event", callable=lambda: finished)


def announce(address: str) -> None:
    with open(sys.argv[1], "w") as file:
        file.write(address)
    print("ready", flush=True)


manager = Manager(authkey=b"key", ctx=multiprocessing.get_context("fork"))
if "start" in sys.argv:
    manager.start()
    announce(manager.address)
    manager.event().wait()
    manager.shutdown()
else:
    server = manager.get_server()
    server.stop_event = threading.Event()
    threading.Thread(target=server.accepter, daemon=True).start()
    announce(server.address)
    finished.wait()
print("done", flush=True)
