# Types of what mprun offers a program, for editors and type checkers.
from typing import Any

from mprun._mprun import deadline as deadline
from mprun.errors import Hung as Hung
from mprun.errors import JobError as JobError
from mprun.errors import MemoryLimit as MemoryLimit
from mprun.errors import RemoteTraceback as RemoteTraceback
from mprun.errors import SpecError as SpecError
from mprun.errors import TaskError as TaskError
from mprun.errors import Timeout as Timeout
from mprun.errors import WorkerDied as WorkerDied
from mprun.executor import Executor as Executor
from mprun.joblib_backend import register_joblib as register_joblib
from mprun.jobs import Run as Run
from mprun.jobs import map as map
from mprun.jobs import run as run
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
