"""One worker of torch.distributed.rpc never calls shutdown(), in which the other waits for it."""

import os
import socket
import threading

import torch.multiprocessing
from torch.distributed import rpc


def run(rank: int, port: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2)
    if rank == 1:
        threading.Event().wait()
    rpc.shutdown(timeout=0)


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port,), nprocs=2)  # hangs here
    print("done")
