"""What mprun and a process that it started say to each other: core/wire/protocol.h in Python."""
from __future__ import annotations

import os
from types import SimpleNamespace

from mprun import _mprun

TYPE_CHECKING = False  # as typing has it, whose import takes a millisecond or two
if TYPE_CHECKING:
    from typing import Any

# Frame types.
START, TASKS, STOP, FORK, REAP = 1, 2, 3, 4, 5
READY, RESULT, START_FAILED, FORKED, EXITED, STAGE = 11, 12, 13, 14, 15, 16

#: The exit code of a worker whose start failed: the reason went to the supervisor as a frame.
EXIT_START_FAILED = 3
#: The exit code of a worker that can no longer talk to the supervisor.
EXIT_CHANNEL_LOST = 86


class StartFailure(Exception):
    """A start that the user's code or spec made impossible; the user sees the stage and the traceback."""

    def __init__(self, stage: str, message: str, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.stage, self.message, self.cause = stage, message, cause


class Start(SimpleNamespace):
    """The START frame: what this process is and what it loads. Written by core/launch/python_process.cc."""

    role: str
    slot: int
    script: str
    function: str
    call: str
    setup: str
    worker_setup: str
    preload: list[str]
    cpus: list[int]  # what a worker or rank is bound to; empty: nothing
    nodes: list[int]  # the memory nodes that its memory comes from; empty: any
    interleave: list[int]  # of a host: the memory nodes over which it spreads its own; empty: as it comes
    args: list[str]
    seed: int | None
    arrays: dict[str, Any] | None
    tensors: dict[str, Any]
    forked: bool


class Channels:
    """The inherited descriptors: frames in, frames out, the claim table."""

    def __init__(self, channel: int, results: int, claims: int) -> None:
        self.channel, self.results, self.claims = channel, results, claims
        self.owner = os.getpid()  # a process that it forks inherits them, and is no rank or worker

    def are_ours(self) -> bool:
        """Whether this process is the one that they connect with mprun."""
        return os.getpid() == self.owner


def report_stage(fds: Channels, text: str) -> None:
    """Reports to the supervisor what this process does before it can serve, which may take long."""
    _mprun.write_frame(fds.results, STAGE, text.encode(errors="backslashreplace"))
