"""The cases of the corpus hang when they run without mprun, and at the marked line."""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Iterator

import pytest

import corpus
import harness
from blocked import Stillness, program_processes
from corpus import Case
from harness import Running

pytestmark = pytest.mark.xdist_group("corpus")  # its setup is done once

PATIENCE = 180  # seconds for all of them, on a slow machine

POLLING_SECONDS = 20  # after which a program that polls counts as one that hangs

BLOCKED_STATES = "SDZ"


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Why each case that has a test did not hang as it should; "" where it did. All of them hang side by side."""
    here = [item for item in request.session.items if item.module is request.module and hasattr(item, "callspec")]
    cases = [item.callspec.params["case"] for item in here if item.callspec.params["case"] in corpus.HERE]
    old_limit = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, old_limit[1]))
    runner = harness.Runner(harness.MPRUN_BIN, tmp_path_factory.mktemp("plain"))
    try:
        yield prove_all(runner, cases)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, old_limit)


class Endless:
    """Watches a program whose first thread polls, look by look, until it has not ended for long."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self._begun = time.monotonic()

    def look(self, everyone: dict[int, harness.Process]) -> bool:
        assert program_processes(self.running, everyone), f"the program has ended\n{self.running.stderr}"
        return time.monotonic() - self._begun >= POLLING_SECONDS


def watch(case: Case, running: Running) -> Stillness | Endless:
    if case.rest == "polling":
        return Endless(running)
    return Stillness(
        running,
        BLOCKED_STATES + ("T" if case.rest == "stopped" else ""),
        main_only=case.only_main_rests,
        beside=case.rest == "beside",
    )


def prove_all(runner: harness.Runner, cases: list[Case]) -> dict[str, str]:
    """Starts the cases, looks at them until each is still, and ends them."""
    outcomes = {}
    try:
        waiting = {}
        for case in cases:
            waiting[case] = watch(case, start(runner, case))
        deadline = time.monotonic() + PATIENCE
        while waiting and time.monotonic() < deadline:
            everyone = harness.list_processes()
            for case, stillness in list(waiting.items()):
                outcome = look(case, stillness, everyone)
                if outcome is not None:
                    outcomes[case.name] = outcome
                    del waiting[case]
            time.sleep(0.05)
        outcomes |= {case.name: f"not still within {PATIENCE} s" for case in waiting}
    finally:
        end_all(runner)
    return outcomes


def start(runner: harness.Runner, case: Case) -> Running:
    folder = runner.folder / str(len(runner.started))  # short: sockets in it have names of 107 characters at most
    folder.mkdir()
    environment = {"PYTHONFAULTHANDLER": "1", **case.environment(folder)}
    return runner.start_plain(*case.argv(folder), env=environment)


def look(case: Case, stillness: Stillness | Endless, everyone: dict[int, harness.Process]) -> str | None:
    """None while it is not known whether the case hangs."""
    try:
        if not stillness.look(everyone):
            return None
    except AssertionError as ended:
        return str(ended)
    running = stillness.running
    if "done" in running.stdout:
        return f"it came to its end: {running.stdout}"
    line = case.line_of(corpus.HANGS_HERE)
    if not case.is_python() or line is None or case.rest == "spinning":
        return ""
    # Python prints where its threads are when it is killed.
    running.send_signal(signal.SIGABRT)
    running.process.wait()
    if f'File "{case.source}", line {line} in ' in running.stderr:
        return ""
    return f"it hangs, but not in line {line}:\n{running.stderr}"


def end_all(runner: harness.Runner) -> None:
    """Orphans, too: a case that printed where it hangs has left its children to us. Python's trackers end last, on
    their own: only they know which shared memory must be removed."""
    deadline = time.monotonic() + PATIENCE
    while (below := harness.living_descendants()) and time.monotonic() < deadline:
        harness.kill_all([process for process in below if "resource_tracker import main" not in str(process)])
        time.sleep(0.01)
    runner.finish()
    while below := harness.living_descendants():
        harness.kill_all(below)
        time.sleep(0.01)
    harness.reap_zombies()


@corpus.each_case
def test_hangs_plain(outcomes: dict[str, str], case: Case) -> None:
    """Otherwise mprun's report would prove nothing."""
    assert outcomes[case.name] == ""


def test_every_program_is_in_the_table() -> None:
    """And none is there twice; helper files are listed by name."""
    helpers = {"forkserver_warm.py", "forks_beside_regions.c", "import_gate.py", "import_slow.py"}
    sources = {path.name for path in corpus.CASES.iterdir() if path.suffix != ".h"}
    assert sources - helpers == {case.program for case in corpus.ALL}
    names = [case.name for case in corpus.ALL]
    assert len(names) == len(set(names))


def test_all_reported_cases_are_there() -> None:
    assert {case.number for case in corpus.ALL if case.number} == set(range(1, 25))
