"""Reference of tests/bench/start.py: what four forks of a process with torch cost, nothing else.

`fork_start.py TASK` prints the same line as pool_start.py, when the first child (first) or every
child (meet) has sent one byte.
"""

from __future__ import annotations

import json
import os
import sys
import time

import meeting
import timed_torch


def main() -> None:
    """Forks and waits."""
    awaited = meeting.WORKERS if sys.argv[1] == "meet" else 1
    readable, writable = os.pipe()
    for _ in range(meeting.WORKERS):
        if os.fork() == 0:
            os.write(writable, b".")
            os._exit(0)
    for _ in range(awaited):
        os.read(readable, 1)
    print(json.dumps({"ran": time.time(), "imports": [timed_torch.span]}), flush=True)
    for _ in range(meeting.WORKERS):
        os.wait()


if __name__ == "__main__":
    main()
