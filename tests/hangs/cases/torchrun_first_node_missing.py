"""torchrun for the second of two nodes, the first of which never comes."""

import os
import socket
import sys

with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
nodes = ["--nnodes=2", "--node_rank=1", "--nproc_per_node=1"]
address = ["--master_addr=127.0.0.1", f"--master_port={port}"]
program = [sys.executable, "-m", "torch.distributed.run"]
os.execv(sys.executable, [*program, *nodes, *address, "--no_python", "/bin/true"])
