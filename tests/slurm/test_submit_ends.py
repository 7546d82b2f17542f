"""mprun submit --wait on a terminal: what Ctrl-C offers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster import Cluster
from harness import RunCommand, marks, wait_until
from jobs import PATIENT, results, squares, summary, write_job
from terminal import COLUMNS, Terminal

OFFER = "d: leave it running, c: cancel it, Enter: go on waiting"
CTRL_C = "\x03"

Submit = Callable[[], Terminal]


@pytest.fixture
def submitted(cluster: Cluster, tmp_path: Path, mprun: Path) -> Iterator[Terminal]:
    """mprun submit --wait for two shards that are at work and wait for the file go."""
    job = write_job(tmp_path, PATIENT, inputs={"range": 10}, processes=1)
    words = [mprun.resolve(), "submit", "--wait", "--nodes", "2", "--output", "out", job]
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "xterm", **cluster.environment}
    terminal = Terminal([str(word) for word in words], tmp_path, variables, COLUMNS)
    yield terminal
    terminal.close()


def number_of(terminal: Terminal, folder: Path) -> str:
    """Of the batch job, once both shards work."""
    wait_until(lambda: {"4", "5"} <= set(marks(folder / "began")), 30, "both shards to work")
    return terminal.expect(r"mprun: job (\d+);").group(1)


def offer(terminal: Terminal, times: int = 1) -> None:
    """Presses Ctrl-C and waits for what is offered, the `times`th time."""
    terminal.type(CTRL_C)
    terminal.expect(rf"(?s)({OFFER}.*){{{times}}}")


def test_ctrl_c_can_leave_the_job_running(
    cluster: Cluster, tmp_path: Path, submitted: Terminal, run_mprun: RunCommand
) -> None:
    number = number_of(submitted, tmp_path)
    offer(submitted)
    submitted.type("d\n")
    assert submitted.wait() == 128 + 2
    assert f"job {number} goes on; afterwards: mprun merge " in submitted.output
    assert cluster.states(number) == {"RUNNING"}
    (tmp_path / "go").write_text("\n")
    cluster.wait_for_end(number)
    run_mprun("merge", "out").check()
    assert results(tmp_path / "out") == squares(10)


def test_ctrl_c_can_cancel_the_job(
    cluster: Cluster, tmp_path: Path, submitted: Terminal, run_mprun: RunCommand
) -> None:
    number = number_of(submitted, tmp_path)
    offer(submitted)
    submitted.type("c\n")
    assert submitted.wait() == 128 + 2
    cluster.wait_for_end(number)
    assert cluster.states(number) == {"CANCELLED"}
    for shard in "12":
        assert summary(tmp_path / "out/shards" / shard)["exit_code"] == 128 + 15
    (tmp_path / "go").write_text("\n")
    again = ["submit", "--wait", "--nodes", "2", "--output", "out", tmp_path / "job.json"]
    run_mprun(*again, env=cluster.environment).check()
    assert results(tmp_path / "out") == squares(10)
    assert marks(tmp_path / "began").count("0") == 1  # what was done was not done again


def test_ctrl_c_can_be_taken_back(tmp_path: Path, submitted: Terminal) -> None:
    number_of(submitted, tmp_path)
    offer(submitted)
    submitted.type("\n")
    submitted.expect(rf"(?s){OFFER}.*job \d+: \d+ of 10 tasks")  # it goes on waiting
    offer(submitted, 2)
    submitted.type("\n")
    (tmp_path / "go").write_text("\n")
    assert submitted.wait() == 0
    assert results(tmp_path / "out") == squares(10)


def test_ctrl_c_twice_leaves_the_job_running(cluster: Cluster, tmp_path: Path, submitted: Terminal) -> None:
    number = number_of(submitted, tmp_path)
    offer(submitted)
    submitted.type(CTRL_C)
    assert submitted.wait() == 128 + 2
    assert f"job {number} goes on" in submitted.output
    assert cluster.states(number) == {"RUNNING"}
