"""A Slurm cluster on this machine, as an ordinary user has it: for tests/slurm.

One slurmctld and some slurmd in a temporary folder, with free ports of their own; it does not need root, and leaves
nothing. auth/none is only for such a test. Each node has an init, as a real one has: processes that a job leaves
become children of that init, not of the test, and zombies are reaped.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness

PROGRAMS = ("slurmctld", "slurmd", "sinfo", "scontrol", "sbatch", "srun", "scancel", "squeue", "tini")

# Final states of a job.
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}

CONFIGURATION = """\
ClusterName=mprun-tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmctldAddr=127.0.0.1
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
AuthInfo=cred_expire=5
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
MaxArraySize=20001
MaxJobCount=50000
KillWait=30
MpiDefault=none
JobRequeue=1
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first_port}-{last_port}] CPUs=2 RealMemory=500
PartitionName=tests Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


def why_not() -> str | None:
    """Why no cluster can be started here; None: it can."""
    missing = [name for name in PROGRAMS if find(name) is None]
    if missing:
        return "there is no Slurm to test with: missing " + ", ".join(missing)
    try:
        socket.getaddrinfo(short_host_name(), None)
    except OSError as error:
        return f"this machine's own name does not resolve, which Slurm needs: {error}"
    return None


def find(program: str) -> str | None:
    """Daemons are in sbin, which users' PATH may not have."""
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def short_host_name() -> str:
    return socket.gethostname().partition(".")[0]


def free_ports(count: int) -> int:
    """The first of `count` neighbouring ports on which no process listens now."""
    for first in range(20000 + os.getpid() % 5000, 32000, count):
        with contextlib.ExitStack() as opened:
            try:
                for port in range(first, first + count):
                    listener = opened.enter_context(socket.socket())
                    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    listener.bind(("", port))
            except OSError:
                continue
            return first
    raise RuntimeError("no free ports")


class Cluster:
    """Runs from __enter__ to __exit__; its programs find it by `environment`."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder = folder
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self.configuration = folder / "slurm.conf"
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def environment(self) -> dict[str, str]:
        """The variables that programs of Slurm need to reach this cluster."""
        return {"SLURM_CONF": str(self.configuration)}

    def __enter__(self) -> Cluster:
        (self.folder / "state").mkdir(parents=True)
        first = free_ports(len(self.nodes) + 1)
        self.configuration.write_text(
            CONFIGURATION.format(
                host=short_host_name(),
                user=getpass.getuser(),
                folder=self.folder,
                controller_port=first,
                nodes=len(self.nodes),
                first_port=first + 1,
                last_port=first + len(self.nodes),
            )
        )
        try:
            self._start("slurmctld", "slurmctld", "-D", "-c")
            for node in self.nodes:
                self.start_node(node)
            self.wait_for_idle()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        """Ends all daemons, and with them every process of every job."""
        for process in self._daemons.values():
            process.terminate()
        for process in self._daemons.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        harness.kill_all(harness.living_descendants())  # slurmstepd outlives slurmd

    def _start(self, name: str, *command: str) -> None:
        init, program = find("tini"), find(command[0])
        assert init and program
        with open(self.folder / f"{name}.out", "wb") as out:
            self._daemons[name] = subprocess.Popen(
                [init, "-s", "--", program, *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**clean_environment(), **self.environment},
            )

    def start_node(self, node: str) -> None:
        """One slurmd."""
        self._start(node, "slurmd", "-D", "-N", node)

    def cut_power(self, node: str) -> None:
        """Ends all processes of a node at once, without notice to any other."""
        init = self._daemons.pop(node)
        init.send_signal(signal.SIGSTOP)  # it stays until all others are gone
        while mine := [process for process in harness.descendants(init.pid) if process.alive]:
            harness.kill_all(mine)
        init.kill()
        init.wait()

    def command(self, *words: str | Path, stderr: bool = False) -> str:
        """The output of a Slurm program, on stderr too if asked for; fails if it fails."""
        done = subprocess.run(
            [find(str(words[0])) or str(words[0]), *map(str, words[1:])],
            env={**clean_environment(), **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + (done.stderr if stderr else "")

    def wait_for_idle(self, timeout: float = 30) -> None:
        """Every node waits for work."""

        def all_idle() -> bool:
            with contextlib.suppress(AssertionError):
                states = self.command("sinfo", "-h", "-N", "-o", "%N %T").split("\n")
                return sorted(states[:-1]) == [f"{node} idle" for node in self.nodes]
            return False

        self.wait_until(all_idle, timeout, "an idle cluster")

    def states(self, job_id: str) -> set[str]:
        """Of all elements of a job, as scontrol names them."""
        return set(re.findall(r"\bJobState=(\S+)", self.command("scontrol", "-o", "show", "job", job_id)))

    def wait_until(self, condition: Callable[[], Any], timeout: float, what: str) -> Any:
        """As that of the harness; a failure shows what Slurm says."""
        try:
            return harness.wait_until(condition, timeout, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    def wait_for_end(self, job_id: str, timeout: float = 60) -> None:
        """No part of a job waits or runs any more."""
        self.wait_until(lambda: self.states(job_id) <= ENDED, timeout, f"the end of job {job_id}")

    def logs(self) -> str:
        """The jobs, the nodes and the logs of the daemons, for a test that failed."""
        parts = {path.name: path.read_text(errors="replace")[-5000:] for path in sorted(self.folder.glob("*.log"))}
        for kind in ("job", "node"):
            with contextlib.suppress(AssertionError):  # the controller may not answer
                parts[f"scontrol show {kind}"] = self.command("scontrol", "-o", "show", kind)
        return "\n".join(f"--- {name}\n{text}" for name, text in parts.items())


def clean_environment() -> dict[str, str]:
    """Our environment, without another cluster's variables."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
