"""A forked child gives work to torch's threads between operators, which only its parent has."""

import os

import torch


@torch.jit.script
def increased(tensor: torch.Tensor) -> torch.Tensor:
    return tensor + 1


@torch.jit.script
def asynchronous(tensor: torch.Tensor) -> torch.Tensor:
    future = torch.jit.fork(increased, tensor)
    return torch.jit.wait(future)


if __name__ == "__main__":
    asynchronous(torch.ones(2))
    pid = os.fork()
    if pid == 0:
        asynchronous(torch.ones(2))  # blocks here
        os._exit(0)
    os.waitpid(pid, 0)  # hangs here
    print("done", flush=True)
