"""Two ranks wait for what they have asked to receive, before they send."""

import socket

import torch
import torch.multiprocessing
from torch import distributed


def run(rank: int, port: int) -> None:
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    received = torch.ones(4)
    distributed.irecv(received, src=1 - rank).wait()  # blocks here
    distributed.isend(torch.ones(4), dst=1 - rank).wait()


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port,), nprocs=2)  # hangs here
    print("done")
