"""An HTCondor pool of one machine with four CPUs, in a temporary folder: for test_condor.py.

HTCondor runs no job of root's, so for root all of it runs in a user namespace, as the user nobody.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import harness

PROGRAMS = ("condor_master", "condor_submit", "condor_wait", "condor_status", "condor_vacate_job", "unshare")
AS_NOBODY = ("unshare", "--user", "--map-user=65534", "--map-group=65534")

CONFIGURATION = """\
use ROLE : Personal
RELEASE_DIR = /usr
LIB = /usr/lib/condor
LIBEXEC = /usr/libexec/condor
SHARE = /usr/share/condor
LOCAL_DIR = {folder}
LOG = {folder}/log
SPOOL = {folder}/spool
EXECUTE = {folder}/execute
LOCK = {folder}/lock
RUN = {folder}/run
CONDOR_HOST = 127.0.0.1
NETWORK_INTERFACE = 127.0.0.1
COLLECTOR_HOST = 127.0.0.1:{port}
USE_SHARED_PORT = False
SEC_DEFAULT_AUTHENTICATION_METHODS = FS
ALLOW_READ = *
ALLOW_WRITE = *
ALLOW_DAEMON = *
ALLOW_NEGOTIATOR = *
ALLOW_ADMINISTRATOR = *
UID_DOMAIN = tests
FILESYSTEM_DOMAIN = tests
NUM_CPUS = 4
NUM_SLOTS = 1
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = True
START = True
SUSPEND = False
PREEMPT = False
KILL = False
RUNBENCHMARKS = False
SCHEDD_INTERVAL = 2
NEGOTIATOR_INTERVAL = 2
NEGOTIATOR_CYCLE_DELAY = 2
"""


def why_not() -> str | None:
    """Why no pool can be started here; None: it can."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if missing:
        return "there is no HTCondor to test with: missing " + ", ".join(missing)
    if os.geteuid() == 0 and subprocess.run([*AS_NOBODY, "true"], capture_output=True, check=False).returncode != 0:
        return "HTCondor runs no job of root's, and there are no user namespaces here"
    return None


class Pool:
    """Runs from __enter__ to __exit__."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._master: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Pool:
        for name in ("log", "spool", "execute", "lock", "run"):
            (self.folder / name).mkdir(parents=True)
        with socket.create_server(("127.0.0.1", 0)) as unused:
            port = unused.getsockname()[1]
        (self.folder / "condor_config").write_text(CONFIGURATION.format(folder=self.folder, port=port))
        with open(self.folder / "master.out", "wb") as out:
            self._master = subprocess.Popen(
                self._words("condor_master", "-f"), stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self._environment()
            )
        harness.wait_until(lambda: "Unclaimed" in self._run("condor_status", "-af", "State").stdout, 60, "an idle pool")
        return self

    def __exit__(self, *_: Any) -> None:
        """Ends all daemons, and with them every process of every job."""
        assert self._master is not None
        self._master.terminate()
        try:
            self._master.wait(20)
        except subprocess.TimeoutExpired:
            self._master.kill()
            self._master.wait()
        harness.kill_all(harness.living_descendants())

    def submit(self, description: str) -> str:
        """Queues what a submit description says; the number of the job."""
        (self.folder / "job.sub").write_text(f"log = {self.folder}/job.log\n{description}")
        return self.command("condor_submit", "-terse", self.folder / "job.sub").partition(".")[0]

    def wait_for_end(self) -> None:
        """All jobs that were submitted have ended."""
        self.command("condor_wait", "-wait", "90", self.folder / "job.log")

    def command(self, *words: str | Path) -> str:
        """The output of one of its programs; fails if it fails."""
        done = self._run(*map(str, words))
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = self._words(*words)
        return subprocess.run(command, env=self._environment(), capture_output=True, text=True, timeout=120, check=False)

    def _words(self, program: str, *words: str) -> list[str]:
        path = shutil.which(program, path=_path())
        assert path is not None
        return [*(AS_NOBODY if os.geteuid() == 0 else ()), path, *words]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": _path(), "CONDOR_CONFIG": str(self.folder / "condor_config")}


def _path() -> str:
    """With the folders of daemons, which users' PATH may lack."""
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
