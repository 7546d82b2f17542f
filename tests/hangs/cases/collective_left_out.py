"""One rank enters a collective once more than the other, which waits for something else (pytorch#33148)."""

import socket
import threading

import torch
import torch.multiprocessing
from torch import distributed


def run(rank: int, port: int) -> None:
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    ones = torch.ones(4)
    distributed.all_reduce(ones)
    if rank == 0:
        distributed.all_reduce(ones)  # blocks here
    threading.Event().wait()


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port,), nprocs=2)  # hangs here
    print("done")
