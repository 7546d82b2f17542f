"""Prints which lines of core/ were run, for tests/coverage.

    python3 tests/coverage_table.py COVERAGE.json GAPS.tsv    # of `llvm-cov export -summary-only`; FILE TAB REASON lines

The exit code is 1 if a file is below the bar without a reason, or has a reason it does not need.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BAR = 90.0  # per cent
FEW = 5  # lines that a small file may miss


@dataclass
class Lines:
    """Lines with code in them, and how many of them were run."""

    run: int = 0
    all: int = 0

    def __add__(self, other: Lines) -> Lines:
        return Lines(self.run + other.run, self.all + other.all)

    @property
    def percent(self) -> float:
        return 100 * self.run / self.all if self.all else 100.0

    def __str__(self) -> str:
        return f"{self.percent:5.1f} %  {self.run:6} of {self.all:6}"


def read_files(text: str) -> dict[str, Lines]:
    """The files of core/, by their names from the root of the repository."""
    files = {}
    for entry in json.loads(text)["data"][0]["files"]:
        path = Path(os.path.normpath(entry["filename"]))
        if path.is_relative_to(ROOT / "core"):
            lines = entry["summary"]["lines"]
            files[str(path.relative_to(ROOT))] = Lines(lines["covered"], lines["count"])
    return files


def read_reasons(text: str) -> dict[str, str]:
    """File to reason; lines that begin with # are comments."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("\t", 1) for line in lines)


def print_table(files: dict[str, Lines], reasons: dict[str, str]) -> bool:
    """Returns whether every gap has a reason and every reason a gap."""
    folders: dict[str, Lines] = defaultdict(Lines)
    for name, lines in files.items():
        folders[str(Path(name).parent)] += lines
    for name, lines in sorted(folders.items()):
        print(f"{lines}  {name}")
    gaps = {
        name: lines
        for name, lines in sorted(files.items())
        if lines.percent < BAR and lines.all - lines.run > FEW
    }
    print(f"\n{len(gaps)} of {len(files)} files below {BAR:.0f} % and by more than {FEW} lines:")
    for name, lines in gaps.items():
        print(f"{lines}  {name}: {reasons.get(name, 'NO REASON GIVEN')}")
    needless = sorted(reasons.keys() - gaps.keys())
    for name in needless:
        print(f"tests/coverage_gaps.tsv gives a reason for {name}, which needs none")
    print(f"\n{sum(files.values(), Lines())}  core/")
    return not needless and all(name in reasons for name in gaps)


def main() -> int:
    coverage, gaps = (Path(argument).read_text(encoding="utf-8") for argument in sys.argv[1:])
    files = read_files(coverage)
    if not files:
        print("nothing of core/ was counted")
        return 1
    return 0 if print_table(files, read_reasons(gaps)) else 1


if __name__ == "__main__":
    sys.exit(main())
