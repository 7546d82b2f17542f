"""A copy of the working tree to build and test elsewhere: for tests/mutations and tests/machines."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MANIFEST = ".working_tree"  # in a copy: the names of its files, one a line


def list_files() -> list[str]:
    """The files that git tracks or would, relative to the root; those deleted but not yet committed are left out."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted({name for name in names if name and (ROOT / name).is_file()})


def commit() -> str:
    """The commit that is checked out, shortened; "-dirty" after it if files differ."""
    describe = ["git", "describe", "--always", "--exclude=*", "--abbrev=8", "--dirty"]
    return subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def update_copy(copy: Path) -> None:
    """Makes `copy` equal to the working tree. Unchanged files keep their times, so that builds are incremental.
    Files that an earlier update put there and that are gone now are removed; others stay."""
    manifest = copy / MANIFEST
    former = manifest.read_text(encoding="utf-8").splitlines() if manifest.is_file() else []
    names = list_files()
    for name in set(former).difference(names):
        (copy / name).unlink(missing_ok=True)
    for name in names:
        _update_file(ROOT / name, copy / name)
    manifest.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


def _update_file(source: Path, target: Path) -> None:
    content, mode = source.read_bytes(), source.stat().st_mode
    if not target.is_file() or target.read_bytes() != content:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    if target.stat().st_mode != mode:
        target.chmod(mode)
