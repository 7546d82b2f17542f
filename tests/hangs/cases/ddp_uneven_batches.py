"""One rank has one batch more than the other: its backward waits for gradients that never come (pytorch#33148)."""

import socket

import torch
import torch.multiprocessing
from torch import distributed


def run(rank: int, port: int) -> None:
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    for _ in range(3 - rank):
        model(torch.ones(2, 4)).sum().backward()  # blocks here
    distributed.broadcast(torch.ones(3), 0)


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port,), nprocs=2)  # hangs here
    print("done")
