"""Devices: which worker gets which, and what is refused. None is needed: mprun is shown a false /dev."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import RunCommand

SCRIPT = """
import os

from events import mark, wait_for

NAMES = ["CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "MPRUN_DEVICE", "MPRUN_DEVICE_INDEX"]


def run(count):
    mark("here")
    wait_for("here", count)
    return [int(os.environ["MPRUN_WORKER"]), [os.environ.get(name) for name in NAMES]]
"""
FILES = {"job.py": SCRIPT, "events.py": harness.EVENTS}


def job(device: str, start_method: str, workers: int = 2) -> dict[str, Any]:
    """Each of its tasks needs a worker of its own."""
    return {
        "script": "job.py:run",
        "device": device,
        "start_method": start_method,
        "processes": workers,
        "inputs": {"items": [workers] * workers},
    }


def make_devices(folder: Path, *names: str) -> dict[str, str]:
    """A directory in place of /dev; returns the variable that points mprun to it."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text("")
    return {"MPRUN_DEVICE_ROOT": str(folder)}


def devices_of(run: harness.Run) -> list[list[str | None]]:
    """What each worker saw, by its number."""
    return [seen for _, seen in sorted(run.check().values())]


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "ascend"])
def test_no_device_with_fork(run_job: RunCommand, tmp_path: Path, device: str) -> None:
    """Present or not: a device cannot be initialised again in a forked child."""
    around = make_devices(tmp_path / "dev", "nvidia0", "davinci0")
    run = run_job(job(device, "fork"), scripts=FILES, env=around).check(2)
    assert re.search(rf'job\.json:\d+: /device: found "{device}"', run.stderr)
    assert "--start-method spawn" in run.stderr
    assert not run.run_dir.exists()


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "ascend"])
@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_no_device_present(
    run_job: RunCommand, tmp_path: Path, start_method: str, device: str
) -> None:
    around = make_devices(tmp_path / "dev", "null", "nvidiactl", "nvidia-uvm", "davinci_manager")
    run = run_job(job(device, start_method), scripts=FILES, env=around).check(2)
    assert re.search(rf'job\.json:\d+: /device: found "{device}"', run.stderr)
    assert '"device": "cpu"' in run.stderr
    assert not run.run_dir.exists()


def test_no_device_of_that_number(run_job: RunCommand, tmp_path: Path) -> None:
    around = make_devices(tmp_path / "dev", "nvidia0", "nvidia1")
    run = run_job(job("cuda:7", "spawn"), scripts=FILES, env=around).check(2)
    assert re.search(r"usable devices are 0, 1", run.stderr)


def test_no_device_visible(run_job: RunCommand, tmp_path: Path) -> None:
    """The caller of mprun may have hidden them; the message mentions it."""
    around = make_devices(tmp_path / "dev", "nvidia0")
    around["CUDA_VISIBLE_DEVICES"] = "-1"
    run = run_job(job("cuda", "spawn"), scripts=FILES, env=around).check(2)
    assert "CUDA_VISIBLE_DEVICES=-1" in run.stderr


@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_devices_are_assigned_in_turn(run_job: RunCommand, tmp_path: Path, start_method: str) -> None:
    """Each worker sees one device, its own, and gets its index."""
    around = make_devices(tmp_path / "dev", "nvidia0", "nvidia1", "nvidia10", "nvidiactl")
    run = run_job(job("cuda", start_method, 4), scripts=FILES, env=around)
    assert devices_of(run) == [[n, None, f"cuda:{n}", n] for n in ("0", "1", "10", "0")]


def test_several_devices_for_each(run_job: RunCommand, tmp_path: Path) -> None:
    """No more workers than devices suffice for; the rule of sharing them in turn is for jobs without needs."""
    around = make_devices(tmp_path / "dev", "nvidia0", "nvidia1", "nvidia2", "nvidia3", "nvidia4")
    spec = {**job("cuda", "spawn", 2), "needs": {"gpus": 2}, "processes": 7}
    run = run_job(spec, scripts=FILES, env=around)
    assert devices_of(run) == [[n, None, f"cuda:{n}", n] for n in ("0,1", "2,3")]
    command = ["sh", "-c", 'test "$CUDA_VISIBLE_DEVICES" = 0,1,2,3,4']
    run_job({"command": command, "needs": {"gpus": 5}, "inputs": {"range": 3}}, env=around).check()
    spec["needs"] = {"gpus": 6}
    refused = run_job(spec, scripts=FILES, env=around).check(2)
    assert re.search(r"job\.json:\d+: /needs/gpus: found 6, but there are only 5 \(cuda\)", refused.stderr)


@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_one_device_for_all(run_job: RunCommand, tmp_path: Path, start_method: str) -> None:
    around = make_devices(tmp_path / "dev", "nvidia0", "nvidia1")
    run = run_job(job("cuda:1", start_method), scripts=FILES, env=around)
    assert devices_of(run) == [["1", None, "cuda:1", "1"]] * 2


def test_devices_that_are_visible(run_job: RunCommand, tmp_path: Path) -> None:
    """In the order that CUDA_VISIBLE_DEVICES gives."""
    around = make_devices(tmp_path / "dev", "nvidia0", "nvidia1", "nvidia2")
    around["CUDA_VISIBLE_DEVICES"] = "2, 0"
    run = run_job(job("cuda", "spawn", 3), scripts=FILES, env=around)
    assert [seen[0] for seen in devices_of(run)] == ["2", "0", "2"]


def test_ascend(run_job: RunCommand, tmp_path: Path) -> None:
    around = make_devices(tmp_path / "dev", "davinci0", "davinci3", "davinci_manager", "nvidia0")
    run = run_job(job("ascend", "spawn"), scripts=FILES, env=around)
    assert devices_of(run) == [[None, n, f"ascend:{n}", n] for n in ("0", "3")]


def test_devices_of_ranks_and_commands(run_job: RunCommand, tmp_path: Path) -> None:
    around = make_devices(tmp_path / "dev", "nvidia0", "nvidia1")
    script = "import mprun, os\n\nmprun.result(os.environ['CUDA_VISIBLE_DEVICES'])\n"
    spec = {"script": "ranks.py", "device": "cuda", "start_method": "spawn", "processes": 3}
    run = run_job(spec, scripts={"ranks.py": script}, env=around).check()
    assert run.values() == ["0", "1", "0"]
    command = ["sh", "-c", 'test "$CUDA_VISIBLE_DEVICES" = "{%}"']
    run_job(
        {"command": command, "device": "cuda", "processes": 2, "inputs": {"range": 8}}, env=around
    ).check()


def test_what_workers_on_the_cpu_see(run_job: RunCommand, start_method: str) -> None:
    """Without a device nothing is hidden or added, except that forked workers have only the CPU."""
    run = run_job(job("cpu", start_method), scripts=FILES, env={"CUDA_VISIBLE_DEVICES": "5"})
    seen = ["", "", None, None] if start_method == "fork" else ["5", None, None, None]
    assert devices_of(run) == [seen] * 2
