"""The first of two nodes of torchrun comes some seconds after the second."""

import socket
import subprocess
import sys
import time

with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]


def node(rank: int) -> "subprocess.Popen[bytes]":
    program = [sys.executable, "-m", "torch.distributed.run"]
    nodes = ["--nnodes=2", f"--node_rank={rank}", "--nproc_per_node=1"]
    address = ["--master_addr=127.0.0.1", f"--master_port={port}"]
    return subprocess.Popen([*program, *nodes, *address, "--no_python", "/bin/true"], stderr=subprocess.DEVNULL)


second = node(1)
time.sleep(float(sys.argv[1]))
first = node(0)
for one in (first, second):
    one.wait()  # torch 1.13 fails after the rendezvous with Python 3.11
print("done")
