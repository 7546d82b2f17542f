"""The group expects three ranks, and only two are started (pytorch#106365)."""

import socket

import torch.multiprocessing
from torch import distributed


def run(rank: int, port: int) -> None:
    address = f"tcp://127.0.0.1:{port}"
    distributed.init_process_group("gloo", address, rank=rank, world_size=3)


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port,), nprocs=2)  # hangs here
    print("done")
