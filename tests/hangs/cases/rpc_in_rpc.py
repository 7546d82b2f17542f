"""A remote function calls back into its caller, whose only thread for remote functions waits too."""

import os
import socket

import torch.multiprocessing
from torch.distributed import rpc


def leaf() -> int:
    return 1


def middle(to: str) -> int:
    return rpc.rpc_sync(to, leaf, timeout=0)


def outer(first: str, second: str) -> int:
    return rpc.rpc_sync(first, middle, args=(second,), timeout=0)


def run(rank: int, port: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=1, init_method=f"tcp://127.0.0.1:{port}")
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2, rpc_backend_options=options)
    if rank == 0:
        print(rpc.rpc_sync("worker1", outer, args=("worker0", "worker1"), timeout=0))
    rpc.shutdown(timeout=0)


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port,), nprocs=2)  # hangs here
    print("done")
