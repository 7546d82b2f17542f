"""One rank waits for a message that the other sends after some seconds of sleep, and for one after some of computing."""

import socket
import sys
import time

import torch
import torch.multiprocessing
from torch import distributed


def run(rank: int, port: int, seconds: float) -> None:
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    message = torch.ones(4)
    if rank == 0:
        distributed.irecv(message, src=1).wait()
        distributed.irecv(message, src=1).wait()
    else:
        time.sleep(seconds)  # the other rank waits for longer than a hang needs to be reported
        distributed.isend(message, dst=0).wait()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sum(range(10_000))
        distributed.isend(message, dst=0).wait()
    distributed.destroy_process_group()


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port, float(sys.argv[1])), nprocs=2)
    print("done")
