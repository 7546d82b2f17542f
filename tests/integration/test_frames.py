"""Frames between a worker and mprun: each is written whole, even if another thread writes one at the same time."""

from __future__ import annotations

from harness import RunCommand

# Frames are longer than the pipe has room for, so that each writer has to wait in the middle of one.
SCRIPT = """
import os
import threading

from mprun import _mprun

SIZE, FRAMES, LETTERS = 300_000, 8, b"abc"


def write(fd, letter):
    for _ in range(FRAMES):
        _mprun.write_frame(fd, letter, bytes([letter]) * SIZE)


def run(_):
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    writers = [threading.Thread(target=write, args=(writable, letter), daemon=True) for letter in LETTERS]
    for writer in writers:
        writer.start()
    try:
        frames = [_mprun.read_frame(readable) for _ in range(FRAMES * len(LETTERS))]
    finally:
        os.close(readable)
    for writer in writers:
        writer.join()
    assert all(payload == bytes([letter]) * SIZE for letter, payload in frames)
    return sorted(letter for letter, _ in frames) == sorted(LETTERS * FRAMES)
"""


def test_frames_of_several_threads_are_not_mixed(run_job: RunCommand) -> None:
    job = {"script": "job.py:run", "inputs": {"range": 1}}
    run = run_job(job, scripts={"job.py": SCRIPT}, timeout=60).check()
    assert run.values() == [True]
