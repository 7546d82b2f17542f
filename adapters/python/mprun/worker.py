"""A worker: loads the function (unless it was forked with it), then serves tasks."""
from __future__ import annotations

import json
import os
from collections.abc import Callable
from types import ModuleType

from mprun import _mprun, script, task
from mprun.protocol import EXIT_CHANNEL_LOST, READY, Channels, Start, report_stage
from mprun.tensor_files import TensorFiles
from mprun.user_code import flush_streams

TYPE_CHECKING = False  # as typing has it, whose import takes a millisecond or two
if TYPE_CHECKING:
    from typing import Any

STYLES = {"item": 0, "args": 1, "kwargs": 2}


def load(start: Start, fds: Channels) -> ModuleType:
    """Loads the script and runs its `setup`; in the host for fork, else in every worker."""
    if start.seed is not None:
        task.plant_seed(start.seed)  # what the script draws while it is imported is the same everywhere, too
    report_stage(fds, f"importing {os.path.basename(start.script)}")
    module = script.load_script(start.script)
    script.find_function(module, start.function, "function")
    if start.worker_setup:
        script.find_function(module, start.worker_setup, "worker_setup")
    if start.seed is not None:
        task.plant_seed(start.seed)
    if start.setup:
        report_stage(fds, f"{start.setup}()")
        script.call_setup(script.find_function(module, start.setup, "setup"), "setup")
    return module


#: The script a host loaded before it forked; None in an interpreter of its own.
loaded: ModuleType | None = None


def run(start: Start, fds: Channels) -> int:
    """Serves tasks until asked to stop; returns the exit code."""
    if start.seed is None:
        task.plant_seed(int.from_bytes(os.urandom(8), "little"))  # or forked workers would all draw what the host would have drawn next
    module = loaded if loaded is not None else load(start, fds)
    if start.worker_setup:
        if start.seed is not None:
            task.plant_seed(start.seed)
        report_stage(fds, f"{start.worker_setup}()")
        script.call_setup(script.find_function(module, start.worker_setup, "worker_setup"), "worker_setup")
    function: Callable[..., Any] = script.find_function(module, start.function, "function")
    style = STYLES[start.call]
    if start.arrays is not None:
        from mprun import arrays

        function, style = arrays.wrap(function, start.arrays), STYLES["item"]
    try:
        _mprun.write_frame(fds.results, READY, b"")
        _mprun.run_tasks(
            fds.channel, fds.results, fds.claims, start.slot, function, style,
            json.loads, TensorFiles(**start.tensors).encode, task.describe, task.seeder(start.seed),
        )
    except OSError:  # the supervisor is gone, or a task closed our descriptors
        flush_streams()
        os._exit(EXIT_CHANNEL_LOST)
    return 0
