"""Sums up runs of the digits job: accuracy, throughput, and whether they agree bit for bit.

    python3 summarize.py RUN_DIR [RUN_DIR...]

Exits 1 if a run is incomplete or two runs differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any


@dataclass
class Run:
    """What one run directory says."""

    name: str  # the start method
    values: dict[int, Any]  # of the tasks that succeeded
    tasks: int  # that ended, in any way
    seconds: float  # from the start of the first task to the end of the last
    start_seconds: float  # before that: interpreters, imports, setup

    @property
    def images(self) -> int:
        """The images that were classified."""
        return self.total("predictions")

    def total(self, field: str) -> int:
        """The sum of one field over all tasks; of a list field, its lengths."""
        parts = (value[field] for value in self.values.values())
        return sum(len(part) if isinstance(part, list) else part for part in parts)


def read_run(folder: Path) -> Run:
    """Reads results.jsonl and summary.json of one run directory."""
    with open(folder / "results.jsonl", encoding="utf-8") as lines:
        results = [json.loads(line) for line in lines]
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    values = {result["task"]: result["value"] for result in results if result["status"] == "ok"}
    begin = min(result["start"] for result in results)
    end = max(result["start"] + result["seconds"] for result in results)
    started = datetime.fromisoformat(summary["started"].replace("Z", "+00:00")).timestamp()
    return Run(summary["start_method"], values, len(results), end - begin, begin - started)


def describe(run: Run) -> str:
    """One line: how fast and how right."""
    return (
        f"{run.name:<11} {run.images:,} images in {run.seconds:.2f} s, after a start of {run.start_seconds:.1f} s: "
        f"{run.images / run.seconds:,.0f} images/s, "
        f"accuracy {run.total('correct') / run.images:.2%}, "
        f"held out {run.total('held_out_correct') / run.total('held_out'):.2%}"
    )


def main() -> int:
    """Prints one line a run and, for several, whether they agree."""
    parser = argparse.ArgumentParser(description="Sum up runs of the digits job.")
    parser.add_argument("run_dir", nargs="+", type=Path)
    runs = [read_run(folder) for folder in parser.parse_args().run_dir]
    agree = True
    for run in runs:
        if len(run.values) < run.tasks or not run.values:
            print(f"{run.name}: {len(run.values)} of {run.tasks} tasks succeeded", file=sys.stderr)
            agree = False
            continue
        print(describe(run))
        if run.values != runs[0].values:
            print(f"{run.name}: the results differ from those of {runs[0].name}", file=sys.stderr)
            agree = False
    if agree and len(runs) > 1:
        print(
            f"{'identical':<11} {len(runs)} runs agree in all {len(runs[0].values)} results, "
            "bit for bit"
        )
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
