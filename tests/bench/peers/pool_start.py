"""Peer of tests/bench/start.py: `pool_start.py METHOD TASK` prints a Pool's first result.

Like mprun's job it imports torch at the top. The line is what the task returned, with our own
import added to those that the result had to wait for.
"""

from __future__ import annotations

import json
import multiprocessing
import sys

import meeting
import timed_torch
import torch_tasks


def main() -> None:
    """Runs one task on each worker of a new Pool."""
    method, task = sys.argv[1], getattr(torch_tasks, sys.argv[2])
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(["timed_torch"])
    with context.Pool(meeting.WORKERS) as pool:
        results = pool.imap_unordered(task, range(meeting.WORKERS))
        result = next(results)
        if timed_torch.span not in result["imports"]:  # otherwise the worker was forked from us
            result["imports"].append(timed_torch.span)
        print(json.dumps(result), flush=True)
        for _ in results:
            pass


if __name__ == "__main__":
    main()
