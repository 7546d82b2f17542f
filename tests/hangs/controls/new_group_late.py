"""One rank computes for some seconds before it makes a group with the others."""

import socket
import sys
import time

import torch.multiprocessing
from torch import distributed


def run(rank: int, port: int, seconds: float) -> None:
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=3)
    end = time.monotonic() + seconds
    while rank == 2 and time.monotonic() < end:
        sum(range(10_000))
    distributed.new_group([0, 1])
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port, float(sys.argv[1])), nprocs=3)
    print("done")
