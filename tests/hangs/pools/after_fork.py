"""What each program here does before it forks, and each child does to show that it works."""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time

import torch

SIZE = 500_000
UNUSED_MODULE = "colorsys"


def region() -> bool:
    """True if a torch operation in two OpenMP threads gives the right result."""
    torch.set_num_threads(2)
    return int(torch.arange(SIZE).add(1).sum()) == SIZE * (SIZE + 1) // 2


def warm_up() -> None:
    """Makes this process one that cannot simply fork: it has used OpenMP and has a thread."""
    assert region()
    threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()


def start_busy_threads() -> None:
    """Two Python threads that compete for the GIL all the time."""

    def count() -> None:
        number = 0
        while True:
            number += 1

    for _ in range(2):
        threading.Thread(target=count, daemon=True).start()


def works(_task: object = None) -> bool:
    """In a child: Python threads, imports and OpenMP work."""
    answers: list[int] = []
    thread = threading.Thread(target=answers.append, args=(1,))
    thread.start()
    thread.join(60)
    sys.modules.pop(UNUSED_MODULE, None)
    importlib.import_module(UNUSED_MODULE)
    return answers == [1] and region()


def wait_for(child: int) -> None:
    """Fails unless the child ended well, and the parent can still use OpenMP."""
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    assert region()


def report() -> None:
    """The last output of a program in which everything was right."""
    assert region()
    print("right", flush=True)
