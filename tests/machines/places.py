"""Where machines are kept, and which mirror they come from."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import working_tree

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mprun/machines"
PASSED_ON = re.compile(r"TERM|CI|NO_COLOR|HARNESS_PATIENCE|\w+_proxy", re.IGNORECASE)


def environment() -> dict[str, str]:
    """That of a command in a machine."""
    kept = {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}
    fixed = {"HOME": "/root", "LANG": "C.UTF-8", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    return kept | fixed | {"TESTED_COMMIT": working_tree.commit()}


def install(suite: str, target: Path, *options: str) -> None:
    """Has mmdebstrap install a release of Debian, as `options` say, in a folder that is not there yet."""
    apt = [f"--aptopt={line}" for line in _access()]
    subprocess.run(["mmdebstrap", "--quiet", *options, *apt, suite, str(target), *_mirrors()], check=True)


def _mirrors() -> list[str]:
    """The mirror that this machine's own Debian comes from; none, for mmdebstrap's default, if it is not Debian."""
    release = re.search(r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(encoding="utf-8"), re.MULTILINE)
    form = ["--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"]
    listing = subprocess.run(["apt-get", "indextargets", *form], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        suite, component, uri = line.split(maxsplit=2)
        if release and (suite, component) == (release[1], "main") and re.search(r"/debian/?$", uri):
            return [uri]
    return []


def _access() -> list[str]:
    """How this machine's apt is configured to reach mirrors: proxies, and whether a mirror may be old."""
    wanted = re.compile(r"Acquire::(https?::(\S+::)?Proxy|Check-Valid-Until|Check-Date)\b")
    lines = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if wanted.match(line)]
