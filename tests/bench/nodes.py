"""10,000 tasks of 10 ms over two nodes of Slurm: mprun, one step per task, one array element per task, GNU parallel.

The cluster is that of tests/slurm, on this machine: its two nodes have two CPUs each, and tasks only sleep, so that four
run at once whatever the machine has. A perfect split would need 2.5 ms per task. Whole commands are timed, from the
submission to the results in one place; a round takes about an hour, most of it for the array. Only mprun keeps the
output, exit code and times of every task.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import BENCH, MPRUN, PYTHON, ROOT, Contender, Figures, Measurements, Unmeasured
from bench import against, read_options, run_timed
from commands import find_tool

sys.path += [str(ROOT / "tests"), str(ROOT / "tests/slurm")]
import harness
from cluster import Cluster, why_not

NODES, SLOTS = 2, 2  # and CPUs of each node
TASK = ["sleep", "0.01"]
MPRUN_NAME = f"mprun submit --wait --nodes {NODES}"

Measure = Callable[[Path, int], float]  # the seconds for a number of tasks, in a new folder


def measure_mprun(folder: Path, count: int, **work: object) -> float:
    """A batch job with one mprun per node, followed to its end and merged."""
    spec = {"version": 1, "inputs": {"range": count}, "processes": SLOTS, **work}
    job = folder / "job.json"
    job.write_text(json.dumps(spec))
    options = ["--nodes", str(NODES), "--output", folder / "out"]
    seconds = run_timed([MPRUN, "submit", "--wait", "-q", *options, job], cwd=folder)[0]
    found = len((folder / "out/results.jsonl").read_bytes().splitlines())
    assert found == count, f"{found} of {count} results"
    return seconds


def measure_commands(folder: Path, count: int) -> float:
    """mprun, one process per task like its peers."""
    return measure_mprun(folder, count, command=[*TASK])


def measure_function(folder: Path, count: int) -> float:
    """mprun, a Python function, called in persistent workers."""
    return measure_mprun(folder, count, script=str(BENCH / "sleep_task.py"), function="nap", python=PYTHON)


def measure_steps(folder: Path, count: int) -> float:
    """srun for each task, as many at once as fit, in one allocation."""
    step = "srun -N1 -n1 -c1 --exact " + shlex.join(TASK)
    script = f"seq {count} | xargs -P{NODES * SLOTS} -I{{}} {step}"
    return batch(folder, script, f"-N{NODES}", f"--ntasks-per-node={SLOTS}")


def measure_elements(folder: Path, count: int) -> float:
    """An array with an element for each task."""
    return batch(folder, shlex.join(TASK), f"--array=1-{count}", "-n1", "-c1")


def measure_parallel(folder: Path, count: int) -> float:
    """GNU parallel on each node of one allocation, with its half of the tasks."""
    parallel = find_tool("parallel", "GNU")
    mine = f"seq {count // NODES} | {parallel} --will-cite -j{SLOTS} -N1 {shlex.join(TASK)} '#'"
    script = f"srun --ntasks-per-node=1 sh -c {shlex.quote(mine)}"
    return batch(folder, script, f"-N{NODES}", "--ntasks-per-node=1", f"-c{SLOTS}")


def batch(folder: Path, script: str, *options: str) -> float:
    """Runs a batch job and waits for it; sbatch --wait would only look every half minute."""
    output = folder / "slurm-%j.out"
    began = time.perf_counter()
    number = run_timed(["sbatch", "--parsable", "--output", output, *options, "--wrap", script], cwd=folder)[1].strip()
    while run_timed(["squeue", "-h", "-j", number, "-o", "%T"])[1]:
        time.sleep(0.2)  # Slurm sends no notice, and constant polling would slow it down
    return time.perf_counter() - began


@contextmanager
def cluster() -> Iterator[None]:
    """Two idle nodes; commands in the block use them."""
    if reason := why_not():
        raise Unmeasured(reason)
    harness.become_subreaper()
    with tempfile.TemporaryDirectory(prefix="mprun-bench-") as folder:
        with Cluster(Path(folder, "cluster"), NODES) as running:
            os.environ.update(running.environment)
            yield


def contender(name: str, measure: Measure, count: int) -> Contender:
    def per_task() -> Figures:
        with tempfile.TemporaryDirectory(prefix="mprun-bench-") as folder:
            return {"each": measure(Path(folder), count) / count}

    return Contender(f"{name}, {count:,} tasks", per_task)


def show_each(seconds: float) -> str:
    return f"{seconds * 1000:,.2f} ms"


def main() -> None:
    """Measures and prints."""
    options = read_options("Tasks of 10 ms over two nodes of Slurm.")
    many, steps, elements = (400, 20, 4) if options.quick else (10_000, 10_000, 10_000)
    try:
        with cluster():
            contenders = [
                contender(MPRUN_NAME, measure_commands, many),
                contender(f"{MPRUN_NAME}, a Python function", measure_function, many),
                contender("GNU parallel on each node", measure_parallel, many),
                contender("srun for each task", measure_steps, steps),
                contender("an array element for each task", measure_elements, elements),
            ]
            found = Measurements(contenders, options.rounds)
    except Unmeasured as reason:
        print(f"Tasks over {NODES} nodes: not measured: {reason}")
        return
    title = f"Time per task, {' '.join(TASK)} over {NODES} nodes, {NODES * SLOTS} at a time"
    found.print_table(title, "each", show_each, [against(contenders[0].name)])


if __name__ == "__main__":
    main()
