"""Counts the test cases of a run of pytest or ctest: for ctest those that GoogleTest reports, else one per test.

    python3 tests/tally.py JUNIT.xml      # of `pytest --junitxml` or `ctest --output-junit`; prints PASSED FAILED SKIPPED
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass

GTEST_LINE = re.compile(r"^\[  (PASSED|FAILED|SKIPPED) {1,2}\] (\d+) tests?[.,]", re.MULTILINE)


@dataclass
class Counts:
    """Test cases by outcome."""

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
    """The cases that one test program's closing lines report; none if it has no such lines."""
    counts = Counts()
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


def count_suite(suite: ET.Element) -> Counts:
    """One pytest run."""
    failed, skipped = (sum(int(suite.get(kind, 0)) for kind in kinds) for kinds in (("failures", "errors"), ("skipped",)))
    return Counts(int(suite.get("tests", 0)) - failed - skipped, failed, skipped)


def main() -> None:
    """Prints the sums over all tests of the file."""
    root = ET.parse(sys.argv[1]).getroot()
    if root.tag == "testsuites":
        counts = sum((count_suite(suite) for suite in root), Counts())
    else:
        counts = sum((count_test(test) for test in root.iter("testcase")), Counts())
    print(counts.passed, counts.failed, counts.skipped)


if __name__ == "__main__":
    main()
