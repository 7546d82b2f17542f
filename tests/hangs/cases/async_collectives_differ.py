"""Two ranks start different collectives and wait for their ends later."""

import socket

import torch
import torch.multiprocessing
from torch import distributed


def run(rank: int, port: int) -> None:
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    numbers = torch.ones(4)
    if rank == 0:
        work = distributed.all_reduce(numbers, async_op=True)
    else:
        work = distributed.broadcast(numbers, src=0, async_op=True)
    work.wait()  # blocks here


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port,), nprocs=2)  # hangs here
    print("done")
