"""Prints the seconds of an os.fork and the wait for the child: fork_python.py COUNT [torch].

With `torch` in a process that has used it with two threads.
"""

from __future__ import annotations

import os
import sys
import time


def fork_and_wait() -> None:
    """The child does nothing."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def main() -> None:
    """Measures and prints."""
    if "torch" in sys.argv[2:]:
        import torch

        torch.set_num_threads(2)
        torch.ones(1_000_000).add(1).sum()
    fork_and_wait()
    count = int(sys.argv[1])
    began = time.perf_counter()
    for _ in range(count):
        fork_and_wait()
    print((time.perf_counter() - began) / count)


if __name__ == "__main__":
    main()
