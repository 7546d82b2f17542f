"""A rank was stopped, by a scheduler, say, while the others wait for it in a collective."""

import os
import signal
import socket

import torch
import torch.multiprocessing
from torch import distributed


def run(rank: int, port: int) -> None:
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    distributed.all_reduce(torch.ones(4))  # blocks here


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port,), nprocs=2)  # hangs here
    print("done")
