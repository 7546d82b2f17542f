"""Jobs in a container that denies what containers deny: mprun needs none of it, or says what it needs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import harness

# A user without rights in namespaces of its own; nothing can be written to, /dev/shm and /tmp included, and there is no
# network.
CONTAINER = (
    "bwrap --die-with-parent --unshare-all --uid 1000 --gid 1000 --cap-drop ALL --ro-bind / / --proc /proc --dev /dev "
    "--tmpfs /dev/shm --remount-ro /dev/shm"
).split()
# podman with its own choice of rights and system calls, over a copy of this machine's files that is forgotten. It wants
# cgroups of version 2, or none, and may not raise limits.
PODMAN = """
set -eu
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /mnt
cd /mnt
mkdir upper work root storage run
mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
if [ -d /sys/fs/cgroup/cpu ]; then
  umount -R /sys/fs/cgroup
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
exec podman --root /mnt/storage --runroot /mnt/run --storage-driver vfs --cgroup-manager cgroupfs run --rm --network host \\
  --cgroups disabled --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 "$@"
"""
FORBID = harness.ROOT / "tests/hangs/forbid.c"
SCRIPT = """
import threading

import mprun


def square(number):
    lock = threading.Lock()
    with mprun.lock("all"):
        mprun.counter("calls").add(1)
    lock.acquire()
    if number == 3:
        lock.acquire()
    return number * number
"""


@pytest.fixture
def container(tmp_path: Path) -> list[str]:
    """A command that runs another in a container, where only `out` can be written to."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    out = tmp_path / "out"
    out.mkdir()
    command = [*CONTAINER, "--bind", str(out), str(out)]
    tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(tried.stderr.strip())
    return command


@pytest.fixture
def podman(tmp_path: Path) -> list[str]:
    """As `container`, of podman."""
    if os.geteuid() != 0 or shutil.which("podman") is None:
        pytest.skip("needs root and podman")
    out = tmp_path / "out"
    out.mkdir()
    enter = ["unshare", "--mount", "--propagation", "private", "bash", "-c", PODMAN, "podman"]
    volumes = [word for folder in (harness.ROOT, tmp_path) for word in ("--volume", f"{folder}:{folder}:ro")]
    command = [*enter, *volumes, "--volume", f"{out}:{out}", "--rootfs", "/mnt/root"]
    tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(tried.stderr.strip())
    return command


def write_job(folder: Path, start_method: str) -> list[str]:
    """The command that runs it, but for --output."""
    (folder / "job.py").write_text(SCRIPT, encoding="utf-8")
    spec = {"version": 1, "script": "job.py:square", "inputs": {"range": 6}, "processes": 2, "chunk_size": 1}
    spec |= {"start_method": start_method, "retries": {"on_hang": 0}}
    (folder / "job.json").write_text(json.dumps(spec), encoding="utf-8")
    return [str(harness.MPRUN_BIN), "--python", harness.MPRUN_PYTHON, str(folder / "job.json")]


def in_container(runner: harness.Runner, container: list[str], *command: str | Path, **more: Path) -> harness.Run:
    """What it ended with. The program that made the container may end a moment before its other processes have."""
    run = runner.start_plain(*container, *command, **more).wait()
    ending = [line for line in run.survivors if re.search(r"\((bwrap|conmon|podman), ", line)]
    harness.wait_until(lambda: not any(harness.is_alive(int(line.split()[0])) for line in ending))
    run.survivors[:] = [line for line in run.survivors if line not in ending]
    return run


def test_a_job_in_a_container(
    runner: harness.Runner, container: list[str], tmp_path: Path, start_method: str
) -> None:
    """Its tasks run, and the one that hangs is found, also where calls that inspect processes are forbidden."""
    forbid = tmp_path / "forbid"
    subprocess.run(["cc", "-O1", "-o", str(forbid), str(FORBID)], check=True)
    mprun = write_job(tmp_path, start_method)
    run = in_container(runner, container, forbid, *mprun, "--output", tmp_path / "out/run").check(1)
    check_results(run, tmp_path / "out/run")


def test_a_job_in_podman(runner: harness.Runner, podman: list[str], tmp_path: Path) -> None:
    """As in the other container; mprun is process 1 there."""
    mprun = write_job(tmp_path, "fork")
    run = in_container(runner, podman, *mprun, "--output", tmp_path / "out/run").check(1)
    check_results(run, tmp_path / "out/run")


def check_results(run: harness.Run, run_dir: Path) -> None:
    """Those of the job: one task hangs."""
    lines = (run_dir / "results.jsonl").read_text(encoding="utf-8").splitlines()
    results = {result["task"]: result for result in map(json.loads, lines)}
    assert {task: result.get("value") for task, result in results.items()} == {0: 0, 1: 1, 2: 4, 3: None, 4: 16, 5: 25}
    assert results[3]["error"]["type"] == "Hung", run
    assert "(lock-cycle)" in run.stderr, run
    assert "job.py:13 in square" in run.stderr, run


def test_a_container_without_room_for_results(runner: harness.Runner, container: list[str], tmp_path: Path) -> None:
    mprun = write_job(tmp_path, "fork")
    run = in_container(runner, container, *mprun, cwd=tmp_path).check(2)
    (line,) = run.stderr.splitlines()
    assert line.startswith("mprun: cannot create the run directory ")
    assert line.endswith(": Read-only file system; choose another place with --output")


def test_doctor_in_a_container(runner: harness.Runner, container: list[str]) -> None:
    """It names what programs will lack there, though jobs do not."""
    doctor = [str(harness.MPRUN_BIN), "doctor", "--json", "--python", harness.MPRUN_PYTHON]
    findings = json.loads(in_container(runner, container, *doctor).check().stdout)
    assert findings["fit"]
    shared_memory = findings["machine"]["/dev/shm"]
    assert shared_memory["value"] == "cannot be written to"
    limit = "nothing can be made in /dev/shm: programs that share tensors or locks through it fail"
    assert shared_memory["limit"] == limit
