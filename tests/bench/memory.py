"""Memory of eight workers that share an array made in `setup`: fork against spawn.

While every worker is in a task that has read the whole array, the proportional set sizes (PSS) of
all processes of the job are added up: a page that n processes share counts 1/n for each of them.
"""

from __future__ import annotations

import fcntl
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import BENCH, PYTHON, ROOT, Contender, Figures, Measurements
from bench import against, environment, job_command, read_options, show_megabytes

sys.path.insert(0, str(ROOT / "tests"))
import harness  # noqa: E402

WORKERS = 8
ARRAY_BYTES = 500_000_000
SMALL_ARRAY_BYTES = 100_000_000
PATIENCE = 120  # seconds for all workers to have read the array

# As in array_task.py, which needs numpy.
BYTES, FOLDER, GATE = "BENCH_BYTES", "BENCH_FOLDER", "gate"


def available_memory() -> int:
    """Bytes that may be used without swapping."""
    found = re.search(r"^MemAvailable: *(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def proportional_size(pid: int) -> int:
    """The PSS of a process in bytes."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    found = re.search(r"^Pss: *(\d+) kB", text, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def measure(command: Sequence[str | Path], size: int) -> Figures:
    """The memory of all processes of a command while its workers hold the array."""
    with tempfile.TemporaryDirectory(prefix="mprun-bench-") as name:
        folder = Path(name)
        with open(folder / GATE, "w", encoding="ascii") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            process = subprocess.Popen(
                [str(word) for word in command],
                env=environment({BYTES: str(size), FOLDER: name}),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

            def all_hold() -> bool:
                if process.poll() is not None:
                    sys.exit(f"ended early with exit code {process.returncode}: {command}")
                return len(list(folder.glob("task-*"))) == WORKERS

            harness.wait_until(all_hold, PATIENCE, "all workers to hold the array")
            tree = [process.pid, *(found.pid for found in harness.descendants(process.pid))]
            total = sum(proportional_size(pid) for pid in tree)
        if process.wait() != 0:
            sys.exit(f"failed with exit code {process.returncode}: {command}")
    return {"pss": total, "beyond": total - size}


def measure_mprun(method: str, size: int) -> Figures:
    """A job of mprun."""
    spec = {
        "script": str(BENCH / "array_task.py"),
        "function": "hold",
        "setup": "setup",
        "inputs": {"range": WORKERS},
        "processes": WORKERS,
        "start_method": method,
        "chunk_size": 1,
    }
    with job_command(spec) as (command, _):
        return measure(command, size)


def measure_pool(method: str, size: int) -> Figures:
    """A Pool that inherits the array (fork) or makes it in its initializer (spawn)."""
    return measure([PYTHON, BENCH / "peers/pool_memory.py", method, str(WORKERS)], size)


def main() -> None:
    """Measures and prints."""
    options = read_options("Memory of eight workers that share an array.")
    size = ARRAY_BYTES
    if options.quick or available_memory() < 1.5 * WORKERS * ARRAY_BYTES:
        size = SMALL_ARRAY_BYTES
    contenders = [
        Contender("mprun, spawn", lambda: measure_mprun("spawn", size)),
        Contender("mprun, fork", lambda: measure_mprun("fork", size)),
        Contender("Pool, spawn", lambda: measure_pool("spawn", size)),
        Contender("Pool, fork", lambda: measure_pool("fork", size)),
    ]
    found = Measurements(contenders, options.rounds)
    array = f"an array of {show_megabytes(size)}"
    title = f"PSS of all processes of a job, {WORKERS} workers and {array}"
    references = [against("mprun, spawn"), against("Pool, fork")]
    found.print_table(title, "pss", show_megabytes, references)
    found.print_table("The same beyond one copy of it", "beyond", show_megabytes, references)


if __name__ == "__main__":
    main()
