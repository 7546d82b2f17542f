"""mprun inside the allocations of a real Slurm: shards, their locations, their ends, and the merged outcome."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import harness
import pytest
from cluster import Cluster
from harness import MPRUN_PYTHON, ROOT, RunCommand, StartCommand, marks
from jobs import PATIENT, results, squares, submit, summary, wrapped, write_job

pytestmark = pytest.mark.xdist_group("slurm")  # one cluster at a time

DIGITS = ROOT / "configs/examples/digits"
DDP = ROOT / "configs/examples/ddp/job.json"


@pytest.mark.parametrize("spec", ["job.json", "logits.json"])
def test_four_shards_of_an_array_equal_one_machine_bit_for_bit(
    spec: str, cluster: Cluster, tmp_path: Path, mprun: Path, run_mprun: RunCommand
) -> None:
    """job.json has its digests in the results; logits.json gathers tensors."""
    words = ["-q", "--python", MPRUN_PYTHON, "-n", "1"]
    run_mprun(*words, "--output", "one", DIGITS / spec).check()
    job = submit(cluster, tmp_path, "--array=0-3", "--wrap", wrapped(mprun, *words, DIGITS / spec))
    cluster.wait_for_end(job)
    run_dir = tmp_path / "runs" / Path(spec).stem / f"slurm-{job}"
    assert "joined 4 shards: 29 ok" in run_mprun("merge", run_dir).check().stderr
    assert results(run_dir) == results(tmp_path / "one")
    assert summary(run_dir)["counts"] == summary(tmp_path / "one")["counts"]
    gathered = tensors(run_dir)
    assert gathered == tensors(tmp_path / "one")
    assert list(gathered) == (["result.npy"] if spec == "logits.json" else [])
    assert "29 ok, 0 failed of 29 tasks" in run_mprun("report", run_dir).check().stdout


def tensors(run_dir: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run_dir / "tensors").glob("*")}


def test_a_step_with_a_task_on_each_node(cluster: Cluster, tmp_path: Path, mprun: Path, run_mprun: RunCommand) -> None:
    job = write_job(tmp_path, PLACE, inputs={"range": 9})
    out = cluster.command("srun", "-N2", "--ntasks-per-node=1", "-c2", "--chdir", tmp_path, mprun, job, stderr=True)
    assert "shard 1 of 2: tasks 0 to 3, from SLURM_PROCID" in out
    assert "shard 2 of 2: tasks 4 to 8, from SLURM_PROCID" in out
    (run_dir,) = (tmp_path / "runs/job").iterdir()
    run_mprun("merge", run_dir).check()
    for task, status, place in results(run_dir):
        assert (status, place["outer"]) == ("ok", []), place
        assert place["node"] == ("n1" if task < 4 else "n2")
        assert place["workers"] == "2"  # the CPUs that Slurm gave, of whatever the machine has
    hosts = [line.split("\t")[1] for line in (run_dir / "joblog.tsv").read_text().splitlines()[1:]]
    assert sorted(hosts) == ["n1"] * 4 + ["n2"] * 5


PLACE = """
import os


def run(number):
    places = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_ID", "PMI_", "PMIX_", "OMPI_COMM_WORLD_", "SLURM_ARRAY_TASK_ID")
    return {
        "outer": [name for name in os.environ if name.startswith(places)],
        "node": os.environ.get("SLURMD_NODENAME"),
        "workers": os.environ["MPRUN_WORKERS"],
    }
"""


def test_a_shard_that_was_killed_goes_on(cluster: Cluster, tmp_path: Path, mprun: Path, run_mprun: RunCommand) -> None:
    job = write_job(tmp_path, PATIENT, inputs={"range": 10}, processes=1)
    command = wrapped(mprun, "--output", "out", job)
    first = submit(cluster, tmp_path, "--array=0-1", "--wrap", command)
    cluster.wait_until(lambda: {"4", "5"} <= set(marks(tmp_path / "began")), 30, "both shards to work")
    written = tmp_path / "out/shards/1/results.jsonl"
    cluster.wait_until(lambda: len(written.read_text().splitlines()) == 4, 30, "results to be written")
    for process in harness.list_processes().values():
        if process.alive and process.name == "mprun" and str(tmp_path).encode() in cwd_of(process.pid):
            harness.kill_all([process])
    cluster.wait_for_end(first)
    refused = run_mprun("merge", tmp_path / "out").check(1)
    assert "shard 2 of 2 (on " in refused.stderr and "has not ended" in refused.stderr
    (tmp_path / "go").write_text("\n")
    second = submit(cluster, tmp_path, "--array=0-1", "--wrap", command)
    cluster.wait_for_end(second)
    run_mprun("merge", tmp_path / "out").check()
    assert results(tmp_path / "out") == squares(10)
    assert marks(tmp_path / "began").count("0") == 1  # finished tasks did not run again


def cwd_of(pid: int) -> bytes:
    try:
        return str(Path(f"/proc/{pid}/cwd").resolve()).encode()
    except OSError:
        return b""


@pytest.mark.parametrize("how", ["requeue", "warning"])
def test_a_job_that_is_ended_early_goes_on(
    how: str, cluster: Cluster, tmp_path: Path, mprun: Path, run_mprun: RunCommand
) -> None:
    """requeue: SIGTERM to all processes at once. warning: SIGUSR2, as before the time limit, to all of a step."""
    job = write_job(
        tmp_path, PATIENT, inputs={"range": 10}, processes=1, retries=0, limits={"grace_seconds": 0.5}
    )
    command = wrapped("srun", "-n2", "-N2", mprun, "--output", "out", job)
    number = submit(cluster, tmp_path, "-N2", "--ntasks-per-node=1", "--requeue", "--wrap", command)
    cluster.wait_until(lambda: {"4", "5"} <= set(marks(tmp_path / "began")), 30, "both shards to work")
    if how == "requeue":
        cluster.command("scontrol", "requeue", number)
    else:
        cluster.command("scancel", "--signal=USR2", f"{number}.0")
    stopped = tmp_path / "out/shards/2/summary.json"
    cluster.wait_until(stopped.exists, 30, "the second shard to put its work back")
    shown = json.loads(stopped.read_text())
    assert shown["exit_code"] == (128 + 15 if how == "requeue" else 128 + 12)
    assert (shown["counts"]["ok"], shown["counts"]["failed"]) == (0, 0)
    (tmp_path / "go").write_text("\n")
    if how == "requeue":
        # Slurm would wait for two minutes before it starts it again, so that no node takes it for the one that ended
        # in the same second.
        cluster.wait_until(lambda: cluster.states(number) == {"PENDING"}, 30, "the job to wait again")
        cluster.command("scontrol", "update", f"JobId={number}", "StartTime=now+2")
    else:
        cluster.wait_for_end(number)
        number = submit(cluster, tmp_path, "-N2", "--ntasks-per-node=1", "--wrap", command)
    cluster.wait_for_end(number)
    run_mprun("merge", tmp_path / "out").check()
    assert results(tmp_path / "out") == squares(10)
    assert marks(tmp_path / "began").count("0") == 1


HANGS = """
import os
import threading


def run(number):
    if number == 7 and not os.path.exists("hung"):
        open("hung", "w").close()
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    return number * number
"""


def test_a_hang_in_one_shard_is_named_and_survived(
    cluster: Cluster, tmp_path: Path, mprun: Path, run_mprun: RunCommand
) -> None:
    job = write_job(tmp_path, HANGS, inputs={"range": 10}, processes=1)
    cluster.command("srun", "-N2", "--ntasks-per-node=1", "--chdir", tmp_path, mprun, "--output", "out", job)
    run_mprun("merge", "out").check()
    assert results(tmp_path / "out") == squares(10)
    (hang,) = summary(tmp_path / "out")["hangs"]
    assert hang["file"].startswith("shards/2/hangs/")
    assert "task.py" in (tmp_path / "out" / hang["file"]).read_text()
    shown = run_mprun("report", "out").check().stdout
    assert hang["file"].removesuffix(".json") in shown


def test_ranks_over_two_nodes_are_one_world(
    cluster: Cluster, tmp_path: Path, mprun: Path, run_mprun: RunCommand
) -> None:
    words = [mprun, "-q", "--python", MPRUN_PYTHON, "-n", "1", "--output", tmp_path / "out", DDP]
    cluster.command("srun", "-N2", "--ntasks-per-node=1", *words)
    run_mprun("merge", "out").check()
    ends = results(tmp_path / "out")
    assert [(task, status) for task, status, _ in ends] == [(0, "ok"), (1, "ok")]
    alone = run_mprun("-q", "--python", MPRUN_PYTHON, "-n", "2", "--output", "one", DDP).check()
    assert alone and ends == results(tmp_path / "one")


FRAGILE = """
import os
import time

import events
import mprun

attempt = int(os.environ["MPRUN_ATTEMPT"])
events.mark("began", f"{mprun.rank()}.{attempt}")
if attempt == 1 and mprun.rank() == 1 and not os.path.exists("goes-well"):
    raise RuntimeError("out of luck")
if attempt == 1:
    events.wait_for("go")
mprun.result([attempt, os.environ["SLURMD_NODENAME"], os.environ["MASTER_PORT"]])
"""


def test_ranks_over_two_nodes_start_again(
    cluster: Cluster, tmp_path: Path, mprun: Path, run_mprun: RunCommand
) -> None:
    job = write_job(tmp_path, FRAGILE, script="task.py", processes=1, retries=1)
    words = ["--ntasks-per-node=1", "--chdir", tmp_path, mprun, "--output", "out", job]
    out = cluster.command("srun", "-N2", *words, stderr=True)
    assert "shard 2: rank 1 failed (RuntimeError: out of luck): all 2 ranks start again, 1 of 1" in out
    run_mprun("merge", "out").check()
    (first, second) = (value for _, _, value in results(tmp_path / "out"))
    assert (first[:2], second[:2]) == ([2, "n1"], [2, "n2"])
    assert first[2] == second[2]


def test_ranks_that_may_start_again_are_requeued(
    cluster: Cluster, tmp_path: Path, mprun: Path, run_mprun: RunCommand
) -> None:
    """What the shards wrote for each other before does not mislead them."""
    (tmp_path / "goes-well").touch()
    job = write_job(tmp_path, FRAGILE, script="task.py", processes=1, retries=1)
    command = wrapped("srun", "-n2", "-N2", mprun, "--output", "out", job)
    number = submit(cluster, tmp_path, "-N2", "--ntasks-per-node=1", "--requeue", "--wrap", command)
    cluster.wait_until(lambda: set(marks(tmp_path / "began")) == {"0.1", "1.1"}, 30, "both ranks to run")
    cluster.command("scontrol", "requeue", number)
    cluster.wait_until(lambda: cluster.states(number) == {"PENDING"}, 60, "the job to wait again")
    assert (tmp_path / "out/rendezvous").exists()
    (tmp_path / "go").write_text("\n")
    cluster.command("scontrol", "update", f"JobId={number}", "StartTime=now+2")
    cluster.wait_for_end(number)
    run_mprun("merge", "out").check()
    assert [value[:2] for _, _, value in results(tmp_path / "out")] == [[1, "n1"], [1, "n2"]]


def test_mpirun(tmp_path: Path, mprun: Path, start_plain: StartCommand, run_mprun: RunCommand) -> None:
    mpirun = shutil.which("mpirun.openmpi")
    if mpirun is None:
        pytest.skip("Open MPI is not installed: there is no mpirun.openmpi")
    job = write_job(tmp_path, PLACE, inputs={"range": 9}, processes=1)
    words = [mpirun, "-np", "2", "--oversubscribe", "--mca", "plm", "isolated", mprun, job]
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    shown = start_plain(*words, env=as_root).wait().check().stderr
    assert "shard 1 of 2: tasks 0 to 3, from OMPI_COMM_WORLD_RANK" in shown
    assert "shard 2 of 2: tasks 4 to 8, from OMPI_COMM_WORLD_RANK" in shown
    (run_dir,) = (tmp_path / "runs/job").iterdir()
    run_mprun("merge", run_dir).check()
    assert [(task, status, place["outer"]) for task, status, place in results(run_dir)] == [
        (task, "ok", []) for task in range(9)
    ]


def test_submit_waits_joins_and_returns_the_exit_code(
    cluster: Cluster, tmp_path: Path, run_mprun: RunCommand
) -> None:
    job = write_job(tmp_path, HANGS.replace("number == 7 and", "number == 3 and") + FAILS, inputs={"range": 10})
    words = ["--nodes", "2", "--time", "5", "--sbatch-option", "mem=100", "--output", "out"]
    shown = run_mprun("submit", "--dry-run", *words, job, env=cluster.environment).check().stdout
    for directive in ("--nodes=2", "--time=5", "--mem=100", "--signal=USR2@60", "--requeue", "--exclusive"):
        assert f"#SBATCH {directive}\n" in shown
    assert not (tmp_path / "out").exists()
    failing = ["--set", 'script="task.py:fail"']
    run = run_mprun("submit", "--wait", *failing, *words, job, env=cluster.environment).check(1)
    number = run.stdout.strip()
    assert (tmp_path / "out/submit.sh").read_text().startswith("#!/bin/bash")
    assert "shard 1 on n1 hangs: partial-deadlock, cause " in run.stderr
    assert f"job {number}: 10 of 10 tasks, 1 failed; 2 shards: 2 ended" in run.stderr
    assert [task for task, status, _ in results(tmp_path / "out") if status == "failed"] == [8]
    assert summary(tmp_path / "out")["exit_code"] == 1
    refused = run_mprun("submit", "--nodes", "3", "--output", "out", job, env=cluster.environment).check(2)
    assert "has 2 shards: go on with --nodes 2" in refused.stderr
    again = run_mprun(
        "submit", "--wait", "--retry-failed", "--accept-changes", *words, job, env=cluster.environment
    ).check()
    assert again and [status for _, status, _ in results(tmp_path / "out")] == ["ok"] * 10


def test_a_node_that_dies_leaves_its_tasks_to_the_others(
    cluster: Cluster, tmp_path: Path, start_mprun: StartCommand
) -> None:
    limits = {"heartbeat_seconds": 1}
    job = write_job(tmp_path, PATIENT, inputs={"range": 10}, processes=1, balance="dynamic", limits=limits)
    waiting = start_mprun("submit", "--wait", "--nodes", "2", "--output", "out", job, env=cluster.environment)
    cluster.wait_until(lambda: {"4", "5"} <= set(marks(tmp_path / "began")), 30, "both shards to work")
    cluster.cut_power("n2")
    (tmp_path / "go").write_text("\n")
    run = waiting.wait(120).check()
    assert "has not ended: it still runs, or was killed; all its tasks are done nevertheless" in run.stderr
    assert results(tmp_path / "out") == squares(10)
    notices = [notice["text"] for notice in summary(tmp_path / "out")["notices"]]
    assert "shard 1 of 2 (on n1): took over task 5 of shard 2, whose heartbeat has stopped" in notices


FAILS = """

def fail(number):
    if number == 8:
        raise ValueError("eight")
    return run(number)
"""


def test_a_submit_that_stops_waiting_leaves_the_job_alone(
    cluster: Cluster, tmp_path: Path, start_mprun: StartCommand, run_mprun: RunCommand
) -> None:
    job = write_job(tmp_path, PATIENT, inputs={"range": 10}, processes=1)
    waiting = start_mprun("submit", "--wait", "--nodes", "1", "--output", "out", job, env=cluster.environment)
    cluster.wait_until(lambda: "4" in marks(tmp_path / "began"), 30, "the shard to work")
    waiting.process.send_signal(signal.SIGINT)
    waiting.process.wait(30)
    assert waiting.process.returncode == 128 + 2
    assert "goes on; afterwards: mprun merge" in waiting.stderr
    (tmp_path / "go").write_text("\n")
    cluster.wait_for_end(waiting.stdout.strip())
    run_mprun("merge", "out").check()
    assert results(tmp_path / "out") == squares(10)
