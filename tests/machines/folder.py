"""A release of Debian in a folder, on the kernel and the processors of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import places
import working_tree

# Makes a folder the root of a new mount namespace and runs a command in it. Its shared memory is separate: tests
# check what is left there. Processes are those of this machine.
ENTER = """
set -euo pipefail
cd "$1"
shift
mount --bind . .
cd "$PWD"
for name in proc sys dev; do mount --rbind "/$name" "$name"; done
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs dev/shm
pivot_root . mnt
umount -l /mnt
cd /root/mprun
exec "$@"
"""
# Words of tests/run.
STAGES_OF_RUN = "--quick nightly format demo dev asan-ubsan tidy tidy-all release tsan clang".split()


class Folder(NamedTuple):
    """A machine that commands enter by changing the root folder."""

    name: str
    title: str  # in the table of README.md; empty: it has no row there
    suite: str

    @property
    def folder(self) -> Path:
        return places.CACHE / self.name

    @property
    def root(self) -> Path:
        return self.folder

    @property
    def results(self) -> Path:
        """What the stages that ran there have recorded (tests/record.sh)."""
        return self.folder / "root/mprun/build/stages.tsv"

    @property
    def lock(self) -> Path:
        return places.CACHE / f"{self.name}.lock"

    def missing(self) -> list[str]:
        """Why this machine is not available here, with the remedy."""
        reasons = []
        if os.geteuid() != 0:
            reasons.append("it needs root, to mount and to change the root folder: run this with sudo")
        if not self.folder.is_dir() and shutil.which("mmdebstrap") is None:
            reasons.append("it needs mmdebstrap: apt-get install mmdebstrap")
        return reasons

    def make(self) -> None:
        """Installs the essential packages and apt, unless already done."""
        if self.folder.is_dir():
            return
        print(f"Installing {self.suite} in {self.folder}", flush=True)
        unfinished = self.folder.with_suffix(".new")
        if unfinished.exists():
            shutil.rmtree(unfinished)
        places.install(self.suite, unfinished, "--variant=minbase", "--dpkgopt=force-unsafe-io")
        _deny_services(unfinished)
        unfinished.rename(self.folder)

    def update(self) -> None:
        """Gives it this machine's network and the working tree."""
        for name in ("hosts", "resolv.conf"):
            shutil.copyfile(f"/etc/{name}", self.folder / "etc" / name)
        copy = self.folder / "root/mprun"
        copy.mkdir(exist_ok=True)
        working_tree.update_copy(copy)

    def stages(self, names: list[str]) -> list[list[str]]:
        """The commands that run these stages, or the usual ones."""
        of_run = [name for name in names if name in STAGES_OF_RUN]
        others = [name for name in names if name not in STAGES_OF_RUN]
        commands = [["tests/run", *of_run]] if of_run or not names else []
        return [*commands, ["tests/machines/stages", *others]] if others else commands

    def run(self, command: list[str]) -> int:
        """The exit code of a command in the copy of the working tree."""
        enter = ["unshare", "--mount", "--propagation", "private", "bash", "-c", ENTER, "enter", str(self.folder)]
        code = subprocess.run([*enter, *command], env=places.environment(), check=False).returncode
        return code if code >= 0 else 128 - code


def _deny_services(root: Path) -> None:
    """Keeps packages from starting services: the machine has no init."""
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n", encoding="utf-8")
    policy.chmod(0o755)
