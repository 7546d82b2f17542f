# Types of what mprun offers a program, for editors and type checkers.
from typing import Any

from mprun._mprun import deadline as deadline
from mprun.shared_tensors import SharedTensors
from mprun.sync import Barrier as barrier
from mprun.sync import Counter as counter
from mprun.sync import Dict as dict
from mprun.sync import Lock as lock
from mprun.sync import Queue as queue

__all__ = ["deadline", "rank", "world_size", "result", "shared", "counter", "lock", "barrier", "queue"]

shared: SharedTensors

def rank() -> int: ...
def world_size() -> int: ...
def result(value: Any) -> None: ...
