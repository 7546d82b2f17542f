"""Bytes per second of tensors handed out, gathered, and both, on two workers: mprun, Pool, torch, joblib, memcpy.

The task copies its input into its own memory, or returns its own memory, or both (tensor_tasks.py). With
mprun the inputs are rows of a mapped .npy file, the outputs rows of one gathered .npy file; its time is from the
start of the first task to the end of the last one, with the creation of that file but not the start of processes. Peers
are timed inside their own process, with workers that have started. One of them, Pool to .npy, gathers as mprun does: its
parent writes the results to a new file of numpy's. A last table compares whole processes: the job that gathers, and a
program in C that writes as many bytes to a new file, without and with the fdatasync() that the job ends with. Before
each measurement, as much memory as it needs, up to 1 GiB, is used and released.

memcpy is numpy.copyto in one thread, row by row between arrays as large as all data moved, every byte of which has
been used before. Cold: into memory that has not. Cached: the same bytes repeatedly, which up to some size never
leave the processor's caches.
"""

from __future__ import annotations

import json
import mmap
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import BENCH, MPRUN, PYTHON, Contender, Figures, Measurements, Unmeasured
from bench import job_command, read_options, run_timed, task_span

WORKERS = 2
# Bytes per tensor, and how many of them: moving them takes longer than all else.
SIZES = {
    1_000: 20_000,
    16_000: 8_000,
    256_000: 1_000,
    1 << 20: 256,
    16 << 20: 24,
    256 << 20: 4,
}
MOST_WARMED = 1 << 30
NAMES = {1 << 20: "1 MB", 16 << 20: "16 MB", 256 << 20: "256 MB"}
WAYS = {
    "in": "handed out",
    "out": "gathered",
    "trip": "there and back, both ways counted",
    "file": "gathered, by the whole process",
}
PEERS = {
    "memcpy": "memcpy",
    "memcpy, cold": "memcpy_cold",
    "memcpy, cached": "memcpy_cached",
    "Pool": "pool",
    "Pool to .npy": "pool_npy",
    "torch queues": "torch",
    "joblib": "joblib",
}
C_PROGRAM, C_SYNCED = "one C process", "C, synced"
# Of the ratios, by way, peer and size.
AIMS = {("in", "memcpy", 256 << 20): 0.8, ("out", "Pool", 1_000): 2.0, ("file", C_PROGRAM, 1 << 20): 0.9} | {
    ("out", "Pool to .npy", size): 3.0 for size in SIZES if size >= 16_000
}


def name_of(size: int) -> str:
    """A human-readable size."""
    return NAMES.get(size, f"{size // 1000} KB")


def make_rows(path: Path, size: int, count: int) -> None:
    """Writes the .npy file of `count` rows of `size` bytes; numpy is the measured Python's, not ours."""
    script = (
        "import numpy, sys; size, count = map(int, sys.argv[2:]);"
        "row = numpy.random.default_rng(0).integers(0, 256, size, numpy.uint8);"
        "rows = numpy.lib.format.open_memmap(sys.argv[1], 'w+', numpy.uint8, (count, size));"
        "rows[:] = row"
    )
    run_timed([PYTHON, "-c", script, path, str(size), str(count)])


def warm_memory(size: int) -> None:
    """Uses so much memory and releases it: a virtual machine may have to get it from its host, which is slow."""
    size = min(size, MOST_WARMED)
    block = bytes(1 << 20)
    with mmap.mmap(-1, size + len(block)) as memory:
        while memory.tell() < size:
            memory.write(block)


def measure_peer(kind: str, rows: Path, size: int, count: int) -> Figures:
    """What tensor_peers.py prints."""
    warm_memory(2 * size * count)
    command = [PYTHON, BENCH / "peers/tensor_peers.py", kind, rows, str(WORKERS)]
    return json.loads(run_timed(["/usr/bin/env", f"BENCH_BYTES={size}", *command])[1])


def measure_mprun(rows: Path, size: int, count: int) -> Figures:
    """One job in each direction."""
    mapped: dict[str, Any] = {"npy": str(rows)}
    ways = {"in": ("take", mapped), "out": ("give", {"range": count}), "trip": ("trip", mapped)}
    figures = {}
    for way, (function, inputs) in ways.items():
        spec = {
            "script": str(BENCH / "tensor_tasks.py"),
            "function": function,
            "inputs": inputs,
            "processes": WORKERS,
            "threads_per_worker": 1,
            "env": {"BENCH_BYTES": str(size)},
            # Where tasks write to their memory it is their own: a forked worker would get a copy of each of its pages
            # at its first write. Those of peers have written to theirs before.
            "start_method": "fork" if way == "out" else "spawn",
        }
        with job_command(spec) as (command, run_dir):
            warm_memory(2 * size * count)
            whole = run_timed(command)[0]
            figures[way] = size * count * (2 if way == "trip" else 1) / task_span(run_dir, count)
            if way == "out":
                figures["file"] = size * count / whole
    return figures


def measure_c_program(folder: Path, size: int, count: int, *options: str) -> Figures:
    """write_rows, with the file where those of jobs are."""
    program = MPRUN.parent / "write_rows"
    if not program.is_file():
        raise Unmeasured(f"{program} is not there (build with MPRUN_BENCH=ON)")
    output = folder / "written"
    warm_memory(2 * size * count)
    whole = run_timed([program, output, str(size), str(count), *options])[0]
    output.unlink()
    return {"file": size * count / whole}


def measure_size(size: int, count: int, rounds: int) -> Measurements:
    """All contenders, round by round."""
    with tempfile.TemporaryDirectory(prefix="mprun-bench-") as folder:
        rows = Path(folder, "rows.npy")
        make_rows(rows, size, count)

        def peer(kind: str) -> Callable[[], Figures]:
            return lambda: measure_peer(kind, rows, size, count)

        contenders = [Contender("mprun", lambda: measure_mprun(rows, size, count))]
        contenders += [Contender(name, peer(kind)) for name, kind in PEERS.items()]
        for name, options in (C_PROGRAM, []), (C_SYNCED, ["sync"]):
            contenders.append(
                Contender(name, lambda options=options: measure_c_program(Path(folder), size, count, *options))
            )
        return Measurements(contenders, rounds)


def print_way(way: str, found: dict[int, Measurements]) -> None:
    """One line per size: mprun's rate, and its ratio to each peer's."""
    print(f"Bytes per second of tensors {WAYS[way]}, {WORKERS} workers: mprun, and its ratio to (aim: at least)")
    peers = [C_PROGRAM, C_SYNCED] if way == "file" else list(PEERS)
    print("  " + "".join(f"{heading:>15}" for heading in ("", "mprun", *peers)).rstrip())
    for size, measured in found.items():
        rate = measured.median("mprun", way)
        cells = [name_of(size), "-" if rate is None else f"{rate / 1e6:,.0f} MB/s"]
        for peer in peers:
            aim = AIMS.get((way, peer, size))
            cells.append(measured.ratio("mprun", peer, way) + (f" ({aim})" if aim else ""))
        print("  " + "".join(f"{cell:>15}" for cell in cells))
    print()


def main() -> None:
    """Measures and prints."""
    options = read_options("Bytes per second of tensors handed out and gathered.")
    share = 10 if options.quick else 1
    found = {}
    for size, count in SIZES.items():
        found[size] = measure_size(size, max(count // share, 2 * WORKERS), options.rounds)
    for way in WAYS:
        print_way(way, found)


if __name__ == "__main__":
    main()
