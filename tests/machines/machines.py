"""The machines that tests/machines/run knows; README.md says what they are."""

from __future__ import annotations

from emulated import AMD64, ARM64, NUMA, Emulated
from folder import Folder

Machine = Folder | Emulated
MACHINES: dict[str, Machine] = {
    machine.name: machine
    for machine in (
        Folder("debian11", "", "bullseye"),
        Folder("debian12", "Debian 12", "bookworm"),
        Folder("debian13", "Debian 13", "trixie"),
        Folder("sid", "Debian unstable", "sid"),
        Emulated("arm64", "Debian 12 on arm64, emulated", ARM64, "bookworm"),
        Emulated("kernel-5.10", "Linux 5.10, emulated", AMD64, "bullseye"),
        Emulated("kernel-6.1", "Linux 6.1, emulated", AMD64, "bookworm"),
        Emulated("kernel-6.12", "Linux 6.12, emulated", AMD64, "trixie"),
        Emulated("numa", "two memory nodes, emulated", NUMA, "trixie"),
    )
}
