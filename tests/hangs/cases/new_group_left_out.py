"""Only the members of a group call new_group(); torch wants all ranks to."""

import socket

import torch
import torch.multiprocessing
from torch import distributed


def run(rank: int, port: int) -> None:
    address = f"tcp://127.0.0.1:{port}"
    distributed.init_process_group("gloo", address, rank=rank, world_size=3)
    if rank > 0:
        pair = distributed.new_group([1, 2])
        distributed.all_reduce(torch.ones(2), group=pair)
    distributed.barrier()


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port,), nprocs=3)  # hangs here
    print("done")
