"""A remote function of torch.distributed.rpc takes some seconds."""

import os
import socket
import sys
import time

import torch.multiprocessing
from torch.distributed import rpc


def slow(seconds: float) -> int:
    time.sleep(seconds)
    return 1


def run(rank: int, port: int, seconds: float) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2)
    if rank == 0:
        rpc.rpc_sync("worker1", slow, args=(seconds,), timeout=0)
    rpc.shutdown()


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port, float(sys.argv[1])), nprocs=2)
    print("done")
