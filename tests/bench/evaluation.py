"""Batch evaluation of the digits net on two workers, against a perfect split of one process's time.

The images of configs/examples/digits, repeated, are evaluated 64 at a time and the logits go to a file, the same
bytes for all: by one process, by mprun (fork; mapped inputs, one gathered file), by mprun's ranks with a split made
beforehand, by Pool and by joblib. Time is that of the whole command, start and imports included.

The first ratio is half the time of the one process over the actual time in the same round. On a busy
machine it says little; the ratio of processor times, in the second table, says what it would be if no other
process ran and no worker ever waited.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench import BENCH, PYTHON, Contender, Figures, Measurements
from bench import against, job_command, read_options, run_timed

WORKERS = 2
UNIT = 64 * WORKERS  # images: whole batches for every rank
IMAGE_LOGITS = 40  # bytes
SINGLE, MPRUN = "perfect split of one process", "mprun, fork"


def children_seconds() -> float:
    """The processor time of all our children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Evaluation:
    """The images, and what each contender makes of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.images = folder / "images.npy"
        self.count = 0
        self.wanted = b""  # the logits of the first contender

    def make_images(self, count: int) -> None:
        """Writes that many images."""
        script = (
            "import numpy, sys; images = numpy.load(sys.argv[1]); count = int(sys.argv[3]);"
            "numpy.save(sys.argv[2], numpy.resize(images, (count, *images.shape[1:])))"
        )
        digits = BENCH.parent.parent / "configs/examples/digits/images.npy"
        run_timed([PYTHON, "-c", script, digits, self.images, str(count)])
        self.count, self.wanted = count, b""

    def timed(self, command: list[Any], output: Path) -> Figures:
        """Runs a command and checks its logits."""
        before = children_seconds()
        seconds = run_timed(["/usr/bin/env", f"BENCH_IMAGES={self.images}", *command])[0]
        used = children_seconds() - before
        logits = output.read_bytes()[-self.count * IMAGE_LOGITS :]
        self.wanted = self.wanted or logits
        if logits != self.wanted:
            sys.exit(f"other logits than those of one process: {command}")
        return {"speed": 1 / seconds, "economy": 1 / used}

    def single(self) -> Figures:
        """The one process, as if split without loss."""
        figures = self.peer("single")
        return {**figures, "speed": figures["speed"] * WORKERS}

    def peer(self, kind: str) -> Figures:
        """evaluation_peers.py."""
        output = self.folder / f"{kind}.npy"
        peer = BENCH / "peers/evaluation_peers.py"
        return self.timed([PYTHON, peer, kind, str(WORKERS), output], output)

    def job(self, spec: Mapping[str, Any]) -> Figures:
        """A job of mprun, whose tensors are called result or logits."""
        name = "result" if "function" in spec else "logits"
        common = {"script": str(BENCH / "evaluation_tasks.py"), "processes": WORKERS}
        with job_command({**common, "threads_per_worker": 1, **spec}) as (command, run_dir):
            return self.timed(command, run_dir / f"tensors/{name}.npy")

    def workers(self) -> Figures:
        """Tasks."""
        inputs = {"npy": str(self.images), "batch": 64}
        function = {"function": "logits", "setup": "setup", "inputs": inputs}
        return self.job({**function, "start_method": "fork"})

    def ranks(self) -> Figures:
        """Ranks, as torchrun would start them."""
        return self.job({"start_method": "spawn"})


def find_count(evaluation: Evaluation, seconds: float) -> int:
    """The number of images that take one process about so long, found by growing runs up to a quarter of it."""
    count, took = UNIT * 100, 0.0
    while took < seconds / 4:
        count *= 4
        evaluation.make_images(count)
        took = WORKERS / evaluation.single()["speed"]
    return round(count * seconds / took / UNIT) * UNIT


def main() -> None:
    """Measures and prints."""
    options = read_options("Batch evaluation against a perfect split.")
    with tempfile.TemporaryDirectory(prefix="mprun-bench-") as name:
        evaluation = Evaluation(Path(name))
        count = find_count(evaluation, 4 if options.quick else 60)
        evaluation.make_images(count)
        before, began = os.getloadavg()[0], time.monotonic()
        measures: dict[str, Callable[[], Figures]] = {
            SINGLE: evaluation.single,
            MPRUN: evaluation.workers,
            "mprun, ranks": evaluation.ranks,
            "Pool, fork": lambda: evaluation.peer("pool"),
            "joblib": lambda: evaluation.peer("joblib"),
        }
        contenders = [Contender(*item) for item in measures.items()]
        found = Measurements(contenders, options.rounds)
        minutes = (time.monotonic() - began) / 60
        load = f"load {before:.1f} before, {os.getloadavg()[0]:.1f} after {minutes:.0f} minutes"
    print(f"Evaluation of {count:,} images, {WORKERS} workers; {load}")
    found.print_table(
        "Time of the whole command, start and imports included; ratios of speed",
        "speed",
        lambda speed: f"{1 / speed:.1f} s",
        [against(SINGLE, {MPRUN: "at least 0.97"}), against(MPRUN)],
    )
    found.print_table(
        "Processor time of all its processes; ratios of economy",
        "economy",
        lambda economy: f"{1 / economy:.1f} s",
        [against(SINGLE), against(MPRUN)],
    )


if __name__ == "__main__":
    main()
