"""Reference of tests/bench/start.py: the bare cost of four forks of a process with torch.

`fork_start.py TASK` prints the same line as pool_start.py, when the first child (first) or every
child (meet) has sent the time at which it ran.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import time

import meeting
import timed_torch


def main() -> None:
    """Forks and waits."""
    number = struct.Struct("d")
    awaited = meeting.WORKERS if sys.argv[1] == "meet" else 1
    readable, writable = os.pipe()
    for _ in range(meeting.WORKERS):
        if os.fork() == 0:
            os.write(writable, number.pack(time.time()))
            os._exit(0)
    ran = max(number.unpack(os.read(readable, number.size))[0] for _ in range(awaited))
    print(json.dumps({"ran": ran, "imports": [timed_torch.span]}), flush=True)
    for _ in range(meeting.WORKERS):
        os.wait()


if __name__ == "__main__":
    main()
