"""Shared tensors in huge pages, transparent ones and of the reserved pool, against pages of 4 KiB: filling them, and
reading rows of them at random.

Changes the kernel's settings while it measures, so it needs root; puts them back in the end. Filling the pool is not
measured: root does it once.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from pathlib import Path

import numpy

from bench import BENCH, Contender, Figures, Measurements, Unmeasured
from bench import against, job_command, read_options, run_timed, show_megabytes, show_milliseconds

SETTING = Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
POOL = Path("/proc/sys/vm/nr_hugepages")
FLOATS_IN_ROW = 16
TABLE_BYTES, SMALL_TABLE_BYTES = 2 << 30, 256 << 20
MOST_WORKERS = 16


def fill_pool(pages: int) -> None:
    """Sets the size of the pool."""
    try:
        POOL.write_text(str(pages))
    except OSError as error:
        raise Unmeasured(f"{POOL}: {error.strerror}") from error
    if int(POOL.read_text()) != pages:
        raise Unmeasured(f"{POOL}: there is no memory for {pages} huge pages")


def measure_pool(table: Path, workers: int) -> Figures:
    """The same as measure(), with a table in the pool."""
    size = re.search(r"^Hugepagesize: +([0-9]+) kB", Path("/proc/meminfo").read_text(), re.M)
    if size is None:
        raise Unmeasured("this kernel has no pool of huge pages")
    before = int(POOL.read_text())
    try:
        fill_pool(before + table.stat().st_size // (int(size[1]) << 10) + 1)
        return measure("never", table, workers, huge_pages="hugetlb")
    finally:
        fill_pool(before)


def measure(state: str, table: Path, workers: int, **more: str) -> Figures:
    """Seconds until the first task begins, and the median over the workers of their two passes over the same rows."""
    try:
        SETTING.write_text(state)
    except OSError as error:
        raise Unmeasured(f"{SETTING}: {error.strerror}") from error
    spec = {
        "script": str(BENCH / "pages_task.py"),
        "function": "gather",
        "shared": {"table": {"npy": str(table)}},
        "inputs": {"items": [workers] * workers},
        "processes": workers,
        "start_method": "fork",
        "chunk_size": 1,
        **more,
    }
    with job_command(spec) as (command, run_dir):
        began = time.time()
        run_timed(command)
        results = [json.loads(line) for line in (run_dir / "results.jsonl").read_text().splitlines()]
    first, second = (float(numpy.median(column)) for column in zip(*(result["value"] for result in results)))
    return {"start": min(result["start"] for result in results) - began, "first": first, "second": second}


def main() -> None:
    """Measures and prints."""
    options = read_options("Shared tensors in huge pages.")
    size = SMALL_TABLE_BYTES if options.quick else TABLE_BYTES
    workers = min(len(os.sched_getaffinity(0)), MOST_WORKERS)
    before = SETTING.read_text().partition("[")[2].partition("]")[0] if SETTING.exists() else ""
    with tempfile.TemporaryDirectory(prefix="mprun-bench-") as folder:
        table = Path(folder, "table.npy")
        numpy.save(table, numpy.ones((size // 4 // FLOATS_IN_ROW, FLOATS_IN_ROW), dtype="f4"))
        contenders = [
            Contender("4 KiB", lambda: measure("never", table, workers)),
            Contender("transparent", lambda: measure("advise", table, workers)),
            Contender("hugetlb", lambda: measure_pool(table, workers)),
        ]
        try:
            found = Measurements(contenders, options.rounds, warm_up=True)
        finally:
            if before:
                SETTING.write_text(before)
    what = f"rows of 64 bytes of a shared table of {show_megabytes(size)}, {workers} workers"
    for figure, title in (
        ("first", f"A million {what}, read for the first time"),
        ("second", "The same rows again"),
        ("start", "From the start of the job to its first task: mostly the filling of the table"),
    ):
        found.print_table(title, figure, show_milliseconds, [against("4 KiB")])


if __name__ == "__main__":
    main()
