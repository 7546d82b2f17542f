"""A Slurm cluster on this machine, as an ordinary user has it: for tests/slurm.

One slurmctld and some slurmd in a temporary folder, with free ports of their own; nothing of it needs root, and nothing
is left of it. auth/none is for such a test only.
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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import harness

PROGRAMS = ("slurmctld", "slurmd", "sinfo", "scontrol", "sbatch", "srun", "scancel", "squeue")

CONFIGURATION = """\
ClusterName=mprun-tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmctldAddr=127.0.0.1
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
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
    """Why no cluster can be had here; None: it can."""
    missing = [name for name in PROGRAMS if find(name) is None]
    if missing:
        return "Slurm is not installed: there is no " + ", ".join(missing)
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
    """The first of `count` neighbouring ports that nobody listens on now."""
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
        """What the programs of Slurm need to reach this cluster."""
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
        harness.kill_all(self.step_daemons())

    def _start(self, name: str, *command: str) -> None:
        program = find(command[0])
        assert program
        with open(self.folder / f"{name}.out", "wb") as out:
            self._daemons[name] = subprocess.Popen(
                [program, *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**clean_environment(), **self.environment},
            )

    def start_node(self, node: str) -> None:
        """One slurmd."""
        self._start(node, "slurmd", "-D", "-N", node)

    def kill_node(self, node: str) -> None:
        """What a power cut does to one node: its daemon and all that runs there are gone, unasked."""
        daemon = self._daemons.pop(node)
        below = [*self.step_daemons(node)]
        below += [child for step in below for child in harness.descendants(step.pid)]
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
        harness.kill_all([process for process in below if process.alive])

    def step_daemons(self, node: str | None = None) -> list[harness.Process]:
        """slurmstepd of this cluster; they outlive their slurmd, and it names its node in SLURMD_NODENAME only."""
        found = []
        for process in harness.descendants(os.getpid()):
            if not process.alive or process.name != "slurmstepd":
                continue
            text = Path(f"/proc/{process.pid}/environ")
            with contextlib.suppress(OSError):
                if f"SLURM_CONF={self.configuration}".encode() not in text.read_bytes():
                    continue
                command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
                if node is None or self._parent_node(process) == node or node.encode() in command:
                    found.append(process)
        return found

    def _parent_node(self, process: harness.Process) -> str | None:
        for node, daemon in self._daemons.items():
            if daemon.pid == process.ppid:
                return node
        return None

    def command(self, *words: str | Path) -> str:
        """What a program of Slurm prints; fails as it fails."""
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
        return done.stdout

    def wait_for_idle(self, timeout: float = 30) -> None:
        """Every node waits for work."""

        def all_idle() -> bool:
            with contextlib.suppress(AssertionError):
                states = self.command("sinfo", "-h", "-N", "-o", "%N %T").split("\n")
                return sorted(states[:-1]) == [f"{node} idle" for node in self.nodes]
            return False

        try:
            harness.wait_until(all_idle, timeout, "an idle cluster")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    def job(self, job_id: str | int) -> dict[str, str]:
        """What scontrol shows of a job; empty if there is none any more."""
        try:
            text = self.command("scontrol", "-o", "show", "job", str(job_id))
        except AssertionError:
            return {}
        return dict(re.findall(r"(\w+)=(\S*)", text.split("\n")[0]))

    def wait_for_end(self, job_id: str | int, timeout: float = 60) -> None:
        """No part of a job waits or runs."""

        def over() -> bool:
            return not self.command("squeue", "-h", "-t", "PD,R,CG,S", "-o", "%A", "-j", str(job_id)).strip()

        harness.wait_until(over, timeout, f"the end of job {job_id}")

    def logs(self) -> str:
        """What the daemons said, for a test that failed."""
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}"
            for path in sorted(self.folder.glob("*.log"))
        )


def clean_environment() -> dict[str, str]:
    """Ours, without another cluster's variables."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}


@contextlib.contextmanager
def cluster(folder: Path, nodes: int) -> Iterator[Cluster]:
    """A cluster that is idle."""
    with Cluster(folder, nodes) as running:
        yield running


__all__: Sequence[str] = ("Cluster", "cluster", "why_not")
_: Mapping[str, str] = {}
