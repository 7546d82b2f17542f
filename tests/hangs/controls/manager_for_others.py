"""A manager that other programs connect to: they know its address, which is multiprocessing's default."""

import sys
import tempfile
import threading
from multiprocessing.managers import BaseManager

tempfile.tempdir = "/tmp"  # a socket's path has 107 characters at most
finished = threading.Event()


class Manager(BaseManager):
    pass


Manager.register("finish", callable=finished.set)
server = Manager(authkey=b"key").get_server()
server.stop_event = threading.Event()
threading.Thread(target=server.accepter, daemon=True).start()
with open(sys.argv[1], "w") as file:
    file.write(server.address)
print("ready", flush=True)
finished.wait()
print("done", flush=True)
