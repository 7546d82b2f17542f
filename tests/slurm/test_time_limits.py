"""A real time limit of Slurm; the shortest is a minute."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster import Cluster
from harness import RunCommand, marks
from jobs import PATIENT, results, squares, submit, summary, wrapped, write_job

pytestmark = pytest.mark.xdist_group("slurm")  # one cluster at a time


@pytest.mark.parametrize("warned", [True, False])
def test_a_job_that_reaches_its_time_limit_goes_on(
    warned: bool, cluster: Cluster, tmp_path: Path, mprun: Path, run_mprun: RunCommand
) -> None:
    """Without a warning srun gets SIGTERM at the limit and kills its step, perhaps before there is a summary."""
    job = write_job(
        tmp_path, PATIENT.replace('"go"', '"go", seconds=300'), inputs={"range": 10}, processes=1, retries=0
    )
    words = [mprun, "--output", "out", job]
    if warned:
        waited = ["submit", "--wait", "--nodes", "2", "--time", "1", "--sbatch-option", "signal=USR2@20"]
        shown = run_mprun(*waited, *words[1:], env=cluster.environment, timeout=200).check(1).stderr
        assert "shard 2 of 2 (on n2) ended early, with exit code 140: 0 of 5 tasks are done" in shown
    else:
        step = wrapped("srun", "-n2", "-N2", *words)
        number = submit(cluster, tmp_path, "-N2", "--ntasks-per-node=1", "-t1", "--wrap", step)
        cluster.wait_for_end(number, 200)
        assert cluster.states(number) == {"TIMEOUT"}
    for shard in "12" if warned else "":
        assert summary(tmp_path / "out/shards" / shard)["exit_code"] == 128 + 12
    assert {"4", "5"} <= set(marks(tmp_path / "began"))
    (tmp_path / "go").write_text("\n")
    again = ["submit", "--wait", "--nodes", "2", "--output", "out", job]
    run_mprun(*again, env=cluster.environment).check()
    assert results(tmp_path / "out") == squares(10)
    assert marks(tmp_path / "began").count("0") == 1  # finished tasks did not run again
