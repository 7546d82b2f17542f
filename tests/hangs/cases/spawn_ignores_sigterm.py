"""Case 22: one rank has failed, the other one ignores the SIGTERM that torch sends it (pytorch#41694)."""

import signal
import time
from multiprocessing.synchronize import Event

import torch.multiprocessing


def work(rank: int, ready: Event) -> None:
    if rank == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        ready.set()
        time.sleep(100_000)
    ready.wait()
    raise ValueError("bad batch")


def main() -> None:
    ready = torch.multiprocessing.get_context("fork").Event()
    torch.multiprocessing.start_processes(  # hangs here
        work, args=(ready,), nprocs=2, start_method="fork"
    )
    print("done", flush=True)


if __name__ == "__main__":
    main()
