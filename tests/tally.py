"""Counts the test cases of a ctest run: those that GoogleTest and pytest tell of, else one a test.

    python3 tests/tally.py JUNIT.xml      # of `ctest --output-junit`; prints PASSED FAILED SKIPPED
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass

GTEST_LINE = re.compile(r"^\[  (PASSED|FAILED|SKIPPED) {1,2}\] (\d+) tests?[.,]", re.MULTILINE)
PYTEST_LINE = re.compile(r"^=* ?((?:\d+ \w+(?:, )?)+) in [\d.]+s.*$", re.MULTILINE)
PYTEST_WORDS = {
    "passed": "passed",
    "xpassed": "passed",
    "failed": "failed",
    "error": "failed",
    "errors": "failed",
    "skipped": "skipped",
    "xfailed": "skipped",
}


@dataclass
class Counts:
    """Test cases by how they ended."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped
        )

    def __bool__(self) -> bool:
        return self != Counts()


def count_cases(output: str) -> Counts:
    """The cases that one test program's closing lines tell of; none if it has no such lines."""
    counts = Counts()
    if summaries := PYTEST_LINE.findall(
        output
    ):  # the last one is its own, others it may have quoted
        for number, word in re.findall(r"(\d+) (\w+)", summaries[-1]):
            if kind := PYTEST_WORDS.get(word):
                setattr(counts, kind, getattr(counts, kind) + int(number))
    else:
        for word, number in dict(GTEST_LINE.findall(output)).items():
            setattr(counts, word.lower(), int(number))
    return counts


def count_test(test: ET.Element) -> Counts:
    """One ctest test: failed if ctest says so, whatever its output claims, or if not started."""
    skip = test.find("skipped")
    if test.get("status") == "disabled" or (
        skip is not None and skip.get("message", "").startswith("SKIP_")
    ):
        return Counts(skipped=1)
    counts = count_cases(test.findtext("system-out") or "")
    if test.get("status") != "run":
        counts.failed = max(counts.failed, 1)
    return counts or Counts(passed=1)


def main() -> None:
    """Prints the sums over all tests of the file."""
    counts = sum((count_test(test) for test in ET.parse(sys.argv[1]).iter("testcase")), Counts())
    print(counts.passed, counts.failed, counts.skipped)


if __name__ == "__main__":
    main()
