"""Runs test suites plain and under mprun and compares them test by test; for tests/suites/run."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

MPRUN = os.environ["MPRUN_BIN"]
PYTHON = os.environ["MPRUN_PYTHON"]

JOBLIB_MODULES = ("parallel", "memmapping", "backports", "missing_multiprocessing", "module")
SKLEARN_TESTS = "parallel or n_jobs or multiproc or backend"  # selected by name
PYTEST = (PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def command(suite: str, junit: Path) -> list[str]:
    """The command that runs a suite and writes a JUnit file."""
    if suite == "joblib":
        modules = [f"joblib.test.test_{name}" for name in JOBLIB_MODULES]
        return [*PYTEST, f"--junit-xml={junit}", "--pyargs", *modules]
    if suite == "sklearn":
        return [*PYTEST, f"--junit-xml={junit}", "-k", SKLEARN_TESTS, "--pyargs", "sklearn"]
    if suite == "zmq":
        return [*PYTEST, f"--junit-xml={junit}", "--pyargs", "zmq.tests"]
    resources = ["-u", "network"] if suite == "test_socketserver" else []  # of this machine alone
    return [PYTHON, "-m", "test", "-v", *resources, "--timeout", "600", "--junit-xml", str(junit), suite]


@dataclass
class Outcome:
    """One run of a suite: how it ended, and how each of its tests did."""

    seconds: float
    returncode: int | None  # None: it took too long
    log: Path
    tests: dict[str, str] = field(default_factory=dict)  # name -> "passed", "skipped", ...

    def reports(self) -> list[str]:
        """The hangs that mprun reported; these suites have none."""
        said = self.log.read_text(encoding="utf-8", errors="replace")
        return re.findall(r"mprun: (?:hang proved|stalled|overdue).*", said)

    def count(self, how: str) -> int:
        return Counter(self.tests.values())[how]

    def end(self) -> str:
        """How the run as a whole ended, in words."""
        return "took too long" if self.returncode is None else f"exit code {self.returncode}"


def run(suite: str, folder: Path, prefix: tuple[str, ...], limit: float) -> Outcome:
    """Runs a suite once, in its own folder."""
    folder.mkdir(parents=True)
    junit, log = folder / "junit.xml", folder / "log"
    start = time.monotonic()
    with open(log, "wb") as out:
        process = subprocess.Popen(
            [*prefix, *command(suite, junit)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
        )
    returncode = None
    try:
        returncode = process.wait(limit)
    except subprocess.TimeoutExpired:
        pass
    finally:
        if returncode is None:  # too long, or Ctrl-C
            os.killpg(process.pid, signal.SIGKILL)  # mprun's: it ends its descendants
            process.wait()
    outcome = Outcome(time.monotonic() - start, returncode, log)
    if junit.is_file():
        outcome.tests = read_tests(junit)
    return outcome


def read_tests(junit: Path) -> dict[str, str]:
    """Every test of a JUnit file and how it ended."""
    tests: dict[str, str] = {}
    for case in ET.parse(junit).iter("testcase"):
        how = {"failure": "failed", "error": "failed", "skipped": "skipped"}
        ends = [how[part.tag] for part in case if part.tag in how]
        end = "failed" if "failed" in ends else ends[0] if ends else "passed"
        name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
        name = re.sub(r"0x[0-9a-f]+", "0x...", name)  # an object's address, new in every run
        while name in tests:
            name += "'"
        tests[name] = end
    return tests


def differences(plain: Outcome, other: Outcome) -> list[tuple[str, str, str]]:
    """(test, how it ended plain, how it ended in the other run) for those that differ."""
    found = []
    for name in sorted(plain.tests.keys() | other.tests.keys()):
        ends = plain.tests.get(name, "not run"), other.tests.get(name, "not run")
        if ends[0] != ends[1]:
            found.append((name, *ends))
    return found


def compare(suite: str, folder: Path, limit: float, options: tuple[str, ...]) -> bool:
    """Runs a suite both ways and prints what differs; true if nothing does. `options`: of mprun."""
    plain = run(suite, folder / suite / "plain", (), limit)
    mprun = run(suite, folder / suite / "mprun", (MPRUN, *options, "--"), limit)
    found = differences(plain, mprun)
    same = not found and plain.returncode == mprun.returncode and bool(plain.tests)
    same = same and not mprun.reports()
    print(
        f"{suite:32}{plain.count('passed'):7}{plain.count('failed'):7}{plain.count('skipped'):8}"
        f"{plain.seconds:9.1f}{mprun.seconds:9.1f}{mprun.seconds / plain.seconds:7.2f}"
        f"  {'same' if same else 'DIFFERENT'}",
        flush=True,
    )
    if not same:
        explain(suite, folder, limit, plain, mprun)
    return same


def explain(suite: str, folder: Path, limit: float, plain: Outcome, mprun: Outcome) -> None:
    """Prints the differences, and which of them two plain runs also have."""
    print(f"  the suite: plain {plain.end()}, under mprun {mprun.end()}; its output: {mprun.log}")
    for report in mprun.reports():
        print(f"  reported as a hang: {report}")
    again = run(suite, folder / suite / "plain-again", (), limit)
    unstable = {name for name, *_ in differences(plain, again)}
    for name, before, after in differences(plain, mprun):
        note = " (not stable: two plain runs differ as well)" if name in unstable else ""
        print(f"  {name}: plain {before}, under mprun {after}{note}", flush=True)


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--timeout", type=float, default=1800)
    parser.add_argument("--stall-seconds")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("suites", nargs="+")
    options = parser.parse_args()
    if options.keep and options.keep.exists():
        parser.error(f"--keep {options.keep}: is there already")
    # In the background of a script it would be ignored, and tests that raise it would fail.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(
        f"{'':32}{'passed':>7}{'failed':>7}{'skipped':>8}{'plain s':>9}{'mprun s':>9}{'ratio':>7}"
    )
    watch = ("--stall-seconds", options.stall_seconds) if options.stall_seconds else ()
    with tempfile.TemporaryDirectory(prefix="suites-") as scratch:
        folder = options.keep or Path(scratch)
        results = [compare(suite, folder, options.timeout, watch) for suite in options.suites]
    print(f"{results.count(True)} of {len(results)} suites the same")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
