"""A whole machine in full emulation: a kernel of Debian, with a folder of Debian 12 and the working tree in its memory.

mprun is built on this machine, by a cross compiler where need be, which is far quicker than in the emulated one.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, NamedTuple

import places
import working_tree

SUITE = "bookworm"
# Of the folder: for the build, for the tests, and what a minimal system consists of.
PACKAGES = (
    "libc6-dev libstdc++-12-dev libcli11-dev nlohmann-json3-dev libfmt-dev libspdlog-dev libvalijson-dev libdw-dev "
    "libxxhash-dev libhwloc-dev libgtest-dev libgmock-dev python3-dev "
    "gcc g++ python3-pytest python3-pytest-xdist python3-jsonschema python3-pyte python3-numpy "
    "base-files base-passwd bash coreutils dash findutils grep hostname iproute2 kmod libc-bin mawk mount procps sed tar "
    "util-linux"
).split()
# What packages do when they are installed, which these are not, as far as the tests need it.
FINISH = """
set -e
cd "$1"
[ -e bin/sh ] || ln -s dash bin/sh
ln -sf gcc usr/bin/cc
ln -sf mawk usr/bin/awk
for name in blas lapack; do ln -sf $name/lib$name.so.3 usr/lib/*-linux-gnu/; done
cp usr/share/base-passwd/passwd.master etc/passwd
cp usr/share/base-passwd/group.master etc/group
rm -rf usr/share/man usr/share/locale var/lib/apt/lists var/cache/apt
"""
# And the only module that tests need: by it the kernel says who is connected to whom.
FETCH_KERNEL = """
set -e
export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"
cd "$1"
package=$(apt-cache depends linux-image-%s | sed -n 's/^ *Depends: //p')
apt-get -q download "$package"
mkdir kernel
dpkg-deb --fsys-tarfile "$package"_*.deb | tar -x --wildcards -C kernel '*/vmlinuz-*' '*/unix_diag.ko*'
mkdir -p %s
find kernel -type f -exec mv -t %s '{}' +
"""
INIT = """#!/bin/bash
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
ln -s /proc/self/fd /dev/fd
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs /dev/shm
chmod 1777 /tmp
hostname emulated
insmod /unix_diag.ko*
ip link set lo up
cd {tree}
echo {begin}
env -i {environment} {command} </dev/null 2>&1 | cat
code=${{PIPESTATUS[0]}}
if [ -e build/stages.tsv ]; then sed 's/^/{stage}/' build/stages.tsv; fi
echo {end} $code
echo o >/proc/sysrq-trigger
sleep infinity
"""
BEGIN, STAGE, END = "machine: begin", "machine: stage ", "machine: exit code"


class Processor(NamedTuple):
    """What an emulator makes."""

    architecture: str  # Debian's name
    emulator: tuple[str, ...]
    console: str
    needed: dict[str, str]  # programs, and their packages
    toolchain: str = ""  # CMake's, in this folder
    layout: tuple[str, ...] = ("-smp", "2")  # how many there are, and where


AMD64 = Processor("amd64", ("qemu-system-x86_64", "-cpu", "max"), "ttyS0", {"qemu-system-x86_64": "qemu-system-x86"})
# Two packages of four cores, and a memory node beside each package.
NUMA = AMD64._replace(
    layout=(
        *("-smp", "8,sockets=2,cores=4"),
        *("-object", "memory-backend-ram,id=near,size=2G", "-numa", "node,nodeid=0,cpus=0-3,memdev=near"),
        *("-object", "memory-backend-ram,id=far,size=2G", "-numa", "node,nodeid=1,cpus=4-7,memdev=far"),
    )
)
ARM64 = Processor(
    "arm64",
    ("qemu-system-aarch64", "-M", "virt", "-cpu", "max,pauth-impdef=on"),
    "ttyAMA0",
    {
        "qemu-system-aarch64": "qemu-system-arm",
        "qemu-aarch64-static": "qemu-user-static",
        "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    },
    "arm64.cmake",
)


class Emulated(NamedTuple):
    """A machine with its kernel. Machines of one processor share all else."""

    name: str
    title: str  # in the table of README.md
    processor: Processor
    kernel_suite: str

    @property
    def shared(self) -> Path:
        return places.CACHE / f"emulated-{self.processor.architecture}"

    @property
    def lock(self) -> Path:
        return self.shared.with_suffix(".lock")

    @property
    def root(self) -> Path:
        return self.shared / "root"

    @property
    def results(self) -> Path:
        """What the stages that ran there have recorded (tests/record.sh)."""
        return places.CACHE / f"{self.name}.tsv"

    @property
    def tree(self) -> Path:
        """What is built: the working tree, or a copy for a cross compiler. It is at the same place in the machine."""
        return self.shared / "mprun" if self.processor.toolchain else working_tree.ROOT

    @property
    def kernel(self) -> Path:
        """A folder: the kernel and its modules."""
        return self.shared / f"kernel-{self.kernel_suite}"

    def missing(self) -> list[str]:
        """Why this machine is not available here, with the remedy."""
        reasons = []
        if os.geteuid() != 0:
            reasons.append("it needs root, to install Debian in a folder: run this with sudo")
        if f"VERSION_CODENAME={SUITE}" not in Path("/etc/os-release").read_text(encoding="utf-8"):
            reasons.append("mprun is built here for Debian 12, which needs Debian 12")
        needed = {"mmdebstrap": "mmdebstrap", "cpio": "cpio", "cmake": "cmake", "ninja": "ninja-build"}
        for program, package in (needed | self.processor.needed).items():
            if shutil.which(program) is None:
                reasons.append(f"it needs {program}: apt-get install {package}")
        return reasons

    def make(self) -> None:
        """Fetches the kernel and the packages, unless already done."""
        architecture = self.processor.architecture
        self.shared.mkdir(parents=True, exist_ok=True)
        extract = ["--variant=extract", f"--architectures={architecture}"]
        if not self.kernel.is_dir():
            print(f"Fetching the kernel of {self.kernel_suite}", flush=True)
            unfinished = self.kernel.with_suffix(".new")
            target = shlex.quote(str(unfinished))
            hook = FETCH_KERNEL % (architecture, target, target)
            places.install(self.kernel_suite, Path("-"), *extract, "--format=null", f"--extract-hook={hook}")
            unfinished.rename(self.kernel)
        if not self.root.is_dir():
            print(f"Unpacking {SUITE} for {architecture} in {self.root}", flush=True)
            unfinished = self.root.with_suffix(".new")
            if unfinished.exists():
                shutil.rmtree(unfinished)
            merged = "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"
            options = [merged, f"--include={','.join(PACKAGES)}", f"--extract-hook={FINISH}"]
            places.install(SUITE, unfinished, *extract, *options)
            unfinished.rename(self.root)

    def update(self) -> None:
        """Brings the copy of the working tree up to date."""
        if self.tree != working_tree.ROOT:
            working_tree.update_copy(self.tree)

    def stages(self, names: list[str]) -> list[list[str]]:
        """The command that runs these stages, or the usual one."""
        return [["tests/machines/stages", *names]]

    def run(self, command: list[str]) -> int:
        """Builds mprun. The exit code of that, if it fails, or of a command in the working tree there."""
        for step in self._build():
            if (code := subprocess.run(step, cwd=self.tree, check=False).returncode) != 0:
                return code
        with tempfile.TemporaryDirectory() as folder:
            init = Path(folder) / "init"
            init.write_text(self._init(command), encoding="utf-8")
            init.chmod(0o755)
            initrd = Path(folder) / "initrd"
            with open(initrd, "wb") as archive:
                _append_archive(archive, self.root, [name.relative_to(self.root) for name in _below(self.root, ["doc"])])
                _append_archive(archive, Path("/"), self._tree_files())
                _append_archive(archive, init.parent, [Path("init")])
                _append_archive(archive, self.kernel, [Path(module.name) for module in self.kernel.glob("*.ko*")])
            return self.boot(initrd)

    def _build(self) -> tuple[list[str], list[str]]:
        configure = ["cmake", "--preset", "dev", "--log-level=NOTICE"]
        if self.processor.toolchain:
            toolchain = self.tree / "tests/machines" / self.processor.toolchain
            configure += [f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", f"-DCMAKE_SYSROOT={self.root}"]
        return configure, ["cmake", "--build", "--preset", "dev"]

    def _tree_files(self) -> list[Path]:
        """The sources and what was built of them, relative to /, after the folders that they are in."""
        sources = [self.tree / name for name in working_tree.list_files()]
        built = _below(self.tree / "build/dev", ["*.o", "*.a", ".ninja*"])
        files = {*built, *(source for source in sources if source.is_file())}  # another may be new or gone by now
        folders = {folder for file in files for folder in file.parents}
        return [name.relative_to("/") for name in sorted(files | folders) if name != Path("/")]

    def _init(self, command: list[str]) -> str:
        given = {name: value for name, value in places.environment().items() if "proxy" not in name.lower()}
        slow = {"HARNESS_PATIENCE": "10", "TESTS_PER_PROCESSOR": "1"}
        environment = (f"{name}={value}" for name, value in (given | slow).items())
        return INIT.format(
            tree=shlex.quote(str(self.tree)),
            begin=BEGIN,
            stage=STAGE,
            end=END,
            environment=shlex.join(environment),
            command=shlex.join(command),
        )

    def boot(self, initrd: Path) -> int:
        """Starts the machine and prints what its command prints; returns the exit code."""
        emulator = [*self.processor.emulator, "-m", "4096", *self.processor.layout, "-nic", "none", "-no-reboot"]
        emulator += ["-display", "none", "-monitor", "none", "-serial", "stdio"]
        emulator += ["-kernel", str(next(self.kernel.glob("vmlinuz-*"))), "-initrd", str(initrd)]
        emulator += ["-append", f"console={self.processor.console} quiet panic=-1"]
        machine = subprocess.Popen(emulator, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert machine.stdout is not None
        code, boot = None, []  # what it printed before the command
        try:
            for raw in machine.stdout:
                line = raw.decode(errors="replace").rstrip("\r\n")
                if boot is not None:
                    boot = None if line == BEGIN else [*boot, line]
                elif line.startswith(STAGE):
                    with open(self.results, "a", encoding="utf-8") as results:
                        results.write(line.removeprefix(STAGE) + "\n")
                elif line.startswith(END):
                    code = int(line.removeprefix(END))
                elif code is None:
                    print(line, flush=True)
            machine.wait()
        finally:
            machine.kill()
            machine.wait()
        if code is None:
            print(*(boot or []), f"{self.name} stopped before the command ended", sep="\n", file=sys.stderr)
        return 1 if code is None else code


def _append_archive(archive: IO[bytes], folder: Path, names: Iterable[Path]) -> None:
    """Files of a folder, as the kernel unpacks them: it takes several archives, one after the other."""
    command = ["cpio", "--quiet", "--null", "--create", "--format=newc", f"--directory={folder}"]
    archive.flush()
    subprocess.run(command, input=b"".join(os.fsencode(name) + b"\0" for name in names), stdout=archive, check=True)


def _below(folder: Path, left_out: list[str]) -> list[Path]:
    """All files and folders, but for names like these."""
    options = [word for name in left_out for word in ("-name", name, "-prune", "-o")]
    command = ["find", str(folder), "-mindepth", "1", *options, "-print0"]
    listing = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return [Path(os.fsdecode(name)) for name in listing.split(b"\0")[:-1]]
