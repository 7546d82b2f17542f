"""mprun submit --wait, and what may happen meanwhile: Ctrl-C, and everything that ends a job early."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster import Cluster, find
from harness import RunCommand, StartCommand, marks
from jobs import PATIENT, results, squares, wait_until_stopped, write_job
from terminal import COLUMNS, Terminal

pytestmark = pytest.mark.xdist_group("slurm")  # one cluster at a time

OFFER = "d: leave it running, c: cancel it, Enter: go on waiting"
CTRL_C = "\x03"

Submit = Callable[[], Terminal]


@pytest.fixture
def submitted(cluster: Cluster, tmp_path: Path, mprun: Path) -> Iterator[Terminal]:
    """mprun submit --wait for two shards that are running and wait for the file go."""
    job = write_job(tmp_path, PATIENT, inputs={"range": 10}, processes=1)
    words = [mprun.resolve(), "submit", "--wait", "--nodes", "2", "--output", "out", job]
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "xterm", **cluster.environment}
    terminal = Terminal([str(word) for word in words], tmp_path, variables, COLUMNS)
    yield terminal
    terminal.close()


def number_of(cluster: Cluster, terminal: Terminal, folder: Path) -> str:
    """The number of the batch job, once both shards work."""
    cluster.wait_until(lambda: {"4", "5"} <= set(marks(folder / "began")), 30, "both shards to work")
    return terminal.expect(r"mprun: job (\d+);").group(1)


def offer(terminal: Terminal, times: int = 1) -> None:
    """Presses Ctrl-C and waits for the offer, the `times`th time."""
    terminal.type(CTRL_C)
    terminal.expect(rf"(?s)({OFFER}.*){{{times}}}")


def test_ctrl_c_can_leave_the_job_running(
    cluster: Cluster, tmp_path: Path, submitted: Terminal, run_mprun: RunCommand
) -> None:
    number = number_of(cluster, submitted, tmp_path)
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
    number = number_of(cluster, submitted, tmp_path)
    offer(submitted)
    submitted.type("c\n")
    assert submitted.wait() == 128 + 2
    cluster.wait_for_end(number)
    assert cluster.states(number) == {"CANCELLED"}
    for shard in "12":
        wait_until_stopped(tmp_path / "out/shards" / shard, 128 + 15)
    (tmp_path / "go").write_text("\n")
    again = ["submit", "--wait", "--nodes", "2", "--output", "out", tmp_path / "job.json"]
    run_mprun(*again, env=cluster.environment).check()
    assert results(tmp_path / "out") == squares(10)
    assert marks(tmp_path / "began").count("0") == 1  # finished tasks did not run again


def test_ctrl_c_can_be_taken_back(cluster: Cluster, tmp_path: Path, submitted: Terminal) -> None:
    number_of(cluster, submitted, tmp_path)
    offer(submitted)
    submitted.type("\n")
    submitted.expect(rf"(?s){OFFER}.*job \d+: \d+ of 10 tasks")  # it goes on waiting
    offer(submitted, 2)
    submitted.type("\n")
    (tmp_path / "go").write_text("\n")
    assert submitted.wait() == 0
    assert results(tmp_path / "out") == squares(10)


def test_ctrl_c_twice_leaves_the_job_running(cluster: Cluster, tmp_path: Path, submitted: Terminal) -> None:
    number = number_of(cluster, submitted, tmp_path)
    offer(submitted)
    submitted.type(CTRL_C)
    assert submitted.wait() == 128 + 2
    assert f"job {number} goes on" in submitted.output
    assert cluster.states(number) == {"RUNNING"}


@pytest.mark.parametrize("how, cluster", [("requeue", 2), ("power", 3)], indirect=["cluster"])
def test_submit_goes_on_waiting_for_a_job_that_restarts(
    how: str, cluster: Cluster, tmp_path: Path, start_mprun: StartCommand
) -> None:
    """requeue: all shards return their work. power: a node is gone, and another one takes its place."""
    job = write_job(tmp_path, PATIENT, inputs={"range": 10}, processes=1)
    words = ["submit", "--wait", "--nodes", "2", "--output", "out", job]
    waiting = start_mprun(*words, env=cluster.environment)
    cluster.wait_until(lambda: {"4", "5"} <= set(marks(tmp_path / "began")), 30, "both shards to work")
    written = tmp_path / "out/shards/1/results.jsonl"
    cluster.wait_until(lambda: len(written.read_text().splitlines()) == 4, 30, "results to be written")
    number = waiting.stdout.strip()
    if how == "requeue":
        cluster.command("scontrol", "requeue", number)
    else:
        cluster.cut_power("n2")
        cluster.command("scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=power")
        # An answer of it that is still on its way would return it to service.
        cluster.command("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=power")
    # The shard of the node that was not hit begins anew, too. On a crowded machine Slurm may start them more than once.
    began = tmp_path / "began"
    cluster.wait_until(lambda: min(marks(began).count(task) for task in "45") >= 2, 60, "both shards to work again")
    (tmp_path / "go").write_text("\n")
    waiting.wait().check()
    hosts = {line.split("\t")[1] for line in (tmp_path / "out/joblog.tsv").read_text().splitlines()[1:]}
    assert hosts == ({"n1", "n2"} if how == "requeue" else {"n1", "n3"})
    assert results(tmp_path / "out") == squares(10)
    assert marks(tmp_path / "began").count("0") == 1  # finished tasks did not run again


STILL_RUNNING = """\
#!/bin/sh
echo asked >>"$HOME/asked"
if test -e "$HOME/over"; then exec {squeue} "$@"; fi
echo RUNNING
"""


def test_submit_waits_until_the_job_is_over(cluster: Cluster, tmp_path: Path, start_mprun: StartCommand) -> None:
    """All output is written, but mprun may still run on a node: going on too early finds the run directory in use."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "squeue").write_text(STILL_RUNNING.format(squeue=find("squeue")))
    (programs / "squeue").chmod(0o755)
    job = write_job(tmp_path, PATIENT, inputs={"range": 4}, processes=1)
    words = ["submit", "--wait", "--nodes", "1", "--output", "out", job]
    path = f"{programs}:{os.environ['PATH']}"
    waiting = start_mprun(*words, env={**cluster.environment, "HOME": str(tmp_path), "PATH": path})
    (tmp_path / "go").write_text("\n")
    cluster.wait_until((tmp_path / "out/shards/1/summary.json").exists, 30, "the shard to end")
    asked = len(marks(tmp_path / "asked"))
    cluster.wait_until(lambda: len(marks(tmp_path / "asked")) >= asked + 3, 30, "Slurm to be asked")
    assert waiting.process.poll() is None
    (tmp_path / "over").write_text("\n")
    waiting.wait().check()
    assert results(tmp_path / "out") == squares(4)


def test_nohup_keeps_submit_waiting(cluster: Cluster, tmp_path: Path, start_mprun: StartCommand) -> None:
    job = write_job(tmp_path, PATIENT, inputs={"range": 10}, processes=1)
    words = ["submit", "--wait", "--nodes", "1", "--output", "out", job]
    ignored = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    waiting = start_mprun(*words, env=cluster.environment, **ignored)
    cluster.wait_until(lambda: "4" in marks(tmp_path / "began"), 30, "the shard to work")
    waiting.send_signal(signal.SIGHUP)
    (tmp_path / "go").write_text("\n")
    waiting.wait().check()
    assert results(tmp_path / "out") == squares(10)
