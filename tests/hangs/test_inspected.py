"""`mprun inspect --wait` says of a program that runs plain what the watch says of it under mprun, except for what only the
preload library records."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import controls
import corpus
import harness
from controls import Control
from corpus import Case
from harness import RunCommand, Runner
from side_by_side import Started

NOT_KNOWN = "without mprun's preload library it is not known"
NOT_PROVED = "not proved: "
PATIENCE = 60  # seconds, on a slow machine; a hang ends the inspection

# With a pattern of why a hang is only `stalled`. Who has a lock is not known if it was held at a fork. The handlers of
# torch's workers are for signal 15, those of UCX, which some builds of torch load, for 1.
SAME = {
    "lock_cycle-gcc": ("deadlock", "lock-cycle", ""),
    "tcp_both_read": ("deadlock", "pipe-cycle", ""),
    "dataloader_lock_cycle": ("stalled", "lock-cycle", r"catches signal (1|15)\b"),
    "dataloader_lock_at_fork": ("stalled", "never-notified", r"catches signal (1|15)\b"),
    "manager_event_never_set": ("stalled", "never-notified", "may connect"),
    "node_unread_output": ("stalled", "queue-not-drained", "catches signal"),
    "fifo_two_orders": ("stalled", "fifo-not-opened", "may open FIFO"),
    "java_monitor_cycle": ("stalled", "lock-cycle", ""),
    "child_stopped": ("stalled", "stopped", "may be continued"),
    "coprocess": ("deadlock", "pipe-cycle", ""),
    "make_reads_fifo": ("stalled", "fifo-not-opened", "may open FIFO"),
    "manager_lock_holder_killed": ("stalled", "lock-cycle", "may connect"),
    "item_of_dead_thread": ("stalled", "never-notified", "polls"),
    "results_counted_forever": ("stalled", "polls-in-vain", "looks again"),
    "queue_polled_forever": ("stalled", "input-never-closed", "polls"),
    "pool_worker_killed": ("deadlock", "worker-died", ""),
}

# Their conditions are read in Python 3.11 only.
LOOPS = ("item_of_dead_thread", "results_counted_forever", "queue_polled_forever")


def cases() -> Iterator[Any]:
    """Those of SAME."""
    for case in corpus.ALL:
        if case.name in SAME:
            reason = case.why_not_here()
            if case.name in LOOPS and not corpus.READS_LOOPS:
                reason = reason or corpus.NO_LOOPS
            yield pytest.param(case, id=case.name, marks=pytest.mark.skipif(reason != "", reason=reason))


def inspect_until_it_hangs(run_mprun: RunCommand, pid: int) -> dict[str, Any]:
    """It may be live at first: it has just been started."""

    def look() -> dict[str, Any] | None:
        report = json.loads(run_mprun("inspect", "--json", "--wait", str(PATIENCE), str(pid)).stdout)
        return report if report["verdict"] != "live" else None

    return harness.wait_until(look, PATIENCE, "a hang")


@pytest.mark.parametrize("case", list(cases()))
def test_is_found_in_a_plain_program(
    run_mprun: RunCommand, runner: Runner, tmp_path: Path, case: Case
) -> None:
    """And the text says the same."""
    running = runner.start_plain(*case.argv(tmp_path), env=case.environment(tmp_path))
    report = inspect_until_it_hangs(run_mprun, running.pid)
    verdict, cause, why_not_proved = SAME[case.name]
    explanation = report["cause"]["explanation"]
    assert (report["verdict"], report["cause"]["id"]) == (verdict, cause), report
    assert re.search(why_not_proved, explanation.partition(NOT_PROVED)[2]), explanation
    assert (NOT_PROVED in explanation) == (verdict == "stalled")
    assert [note for note in report["notes"] if note.startswith(NOT_KNOWN)], report["notes"]
    text = run_mprun("inspect", "--wait", str(PATIENCE), str(running.pid))
    assert text.returncode == (0 if verdict == "stalled" else 1), text.stdout
    assert text.stdout.startswith(f"{verdict}: "), text.stdout
    assert f"({cause})" in text.stdout and NOT_KNOWN in text.stdout
    running.stop()


# Those that look most like the above.
LIVE = {
    "dataloader_slow",
    "dataloader_idle",
    "manager_idle",
    "manager_for_others-ManagerClient",
    "fifo_of_its_own-reads-FifoWriter",
    "fifo_of_its_own-opens-FifoWriter",
    "event_from_handler-Terminator",
    "poll_decides-for",
    "shell_waits",
    "alarm_ends_child",
    "ipc_server-queue-LateClient",
}


@pytest.mark.parametrize(
    "control", [pytest.param(one, id=one.name) for one in controls.HERE if one.name in LIVE]
)
def test_a_control_stays_live(runner: Runner, tmp_path: Path, control: Control) -> None:
    """From its start to its end."""
    other = control.other(tmp_path)
    argv = control.argv(tmp_path, other.argument)
    running = runner.start_plain(*argv, env=harness.library_settings(tmp_path))
    started = Started(other, running, max(control.quiet, 6))
    inspection: subprocess.Popen[str] | None = None
    verdicts = []
    while not started.look() or inspection is not None:
        if inspection is None:
            inspect = [harness.MPRUN_BIN, "inspect", "--json", "--wait", "5", str(running.pid)]
            inspection = subprocess.Popen(inspect, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        elif inspection.poll() is not None:
            report, _ = inspection.communicate()
            if report:  # else the control has ended
                verdicts.append(json.loads(report)["verdict"])
            inspection = None
        time.sleep(0.05)
    other.close()
    assert running.process.poll() == 0
    assert set(verdicts) <= {"live"}
