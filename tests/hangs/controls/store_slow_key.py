"""A key of torch.distributed's store that is set late: waiting for it is right."""

import socket
import sys
import time

import torch.multiprocessing
from torch import distributed


def run(rank: int, port: int, seconds: float) -> None:
    store, _, _ = next(distributed.rendezvous(f"tcp://127.0.0.1:{port}", rank, 2))
    if rank == 0:
        store.get("late")
    else:
        time.sleep(seconds)  # the key comes late: that is what this is about
        store.set("late", "ready")


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port, float(sys.argv[1])), nprocs=2)
    print("done")
