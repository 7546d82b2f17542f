"""Each rank waits for a key of torch.distributed's store before it sets the one that the other waits for."""

import socket

import torch.multiprocessing
from torch import distributed


def run(rank: int, port: int) -> None:
    store, _, _ = next(distributed.rendezvous(f"tcp://127.0.0.1:{port}", rank, 2))
    mine, other = ("left", "right") if rank == 0 else ("right", "left")
    store.get(other)  # blocks here
    store.set(mine, "ready")


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port,), nprocs=2)  # hangs here
    print("done")
