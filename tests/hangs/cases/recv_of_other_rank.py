"""Of three ranks, one expects a message from a rank that sends none."""

import socket

import torch
import torch.multiprocessing
from torch import distributed


def run(rank: int, port: int) -> None:
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=3)
    message = torch.ones(4)
    if rank == 0:
        distributed.send(message, dst=1)
    elif rank == 1:
        distributed.recv(message, src=2)  # blocks here
    else:
        distributed.recv(message, src=1)


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port,), nprocs=3)  # hangs here
    print("done")
