"""One rank takes its time before it enters the collective that the other waits in."""

import socket
import sys
import time

import torch
import torch.multiprocessing
from torch import distributed


def run(rank: int, port: int, seconds: float) -> None:
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    if rank == 1:
        time.sleep(seconds)
    ones = torch.ones(4)  # still held when the group is destroyed: torch 2.6 may hang if its thread is the last to let go
    distributed.all_reduce(ones)
    distributed.destroy_process_group()


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port, float(sys.argv[1])), nprocs=2)
    print("done")
