"""Lists the libraries in a portable build, and adds their licences to it.

    python3 sbom.py SYSROOT PREFIX

SYSROOT is where configs/portable has unpacked Debian's packages, PREFIX the installation. Writes share/doc/mprun/
sbom.cdx.json there (CycloneDX 1.5), with the versions that Debian's changelogs name, and copies the files with the
licences to share/doc/mprun/licences.
"""

from __future__ import annotations

import datetime
import gzip
import json
import re
import shutil
import sys
from pathlib import Path

import wheel_backend

# Of each package that something in the program is from: the licence, by SPDX.
LINKED = {
    "libdw-dev": "GPL-2.0-or-later OR LGPL-3.0-or-later",
    "libelf-dev": "GPL-2.0-or-later OR LGPL-3.0-or-later",
    "zlib1g-dev": "Zlib",
    "liblzma-dev": "LicenseRef-public-domain",
    "libbz2-dev": "bzip2-1.0.6",
    "libstdc++-10-dev": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libgcc-10-dev": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libc6-dev": "LGPL-2.1-or-later",  # start files and libc_nonshared.a
    "libcli11-dev": "BSD-3-Clause",
    "nlohmann-json3-dev": "MIT",
    "libvalijson-dev": "BSD-2-Clause",
    "libfmt-dev": "MIT",
    "libspdlog-dev": "MIT",
    "libxxhash-dev": "BSD-2-Clause",
}
EMBEDDED = {"node-d3": "BSD-3-Clause"}  # a text in the program, from this machine; its licence is in `copyright`


def version(docs: Path, package: str) -> str:
    """The package's version, from the first line of its changelog."""
    changelog = next((docs / package).glob("changelog.Debian*.gz"))  # .amd64: of a rebuild
    with gzip.open(changelog, "rt", encoding="utf-8") as lines:
        return re.match(r"\S+ \((\S+)\)", next(lines))[1]


def component(docs: Path, package: str, licence: str) -> dict[str, object]:
    found = version(docs, package)
    return {
        "type": "library",
        "bom-ref": package,
        "name": package,
        "version": found,
        "purl": f"pkg:deb/debian/{package.replace('+', '%2B')}@{found.replace('+', '%2B').replace(':', '%3A')}",
        "licenses": [{"expression": licence}],
    }


def main() -> None:
    docs, here = Path(sys.argv[1], "usr/share/doc"), Path("/usr/share/doc")
    doc = Path(sys.argv[2], "share/doc/mprun")
    (doc / "licences").mkdir()
    for package in LINKED:
        shutil.copyfile(docs / package / "copyright", doc / "licences" / package)
    made = datetime.datetime.fromtimestamp(wheel_backend.EPOCH, datetime.timezone.utc)
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": "mprun",
                "name": "mprun",
                "version": wheel_backend.version(),
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": [component(docs, *item) for item in LINKED.items()]
        + [component(here, *item) for item in EMBEDDED.items()],
        "dependencies": [{"ref": "mprun", "dependsOn": [*LINKED, *EMBEDDED]}],
    }
    (doc / "sbom.cdx.json").write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
