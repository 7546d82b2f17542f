"""Makes the wheel and the source archive of mprun: what pyproject.toml names as PEP 517's backend, for `pip install .`;
configs/portable calls it with a prefix that it has installed.

    python3 wheel_backend.py PREFIX PLATFORM FOLDER

A wheel holds an installation: bin/mprun is put beside the interpreter, with lib/mprun, from which the program loads its
adapters, where the program looks for it. The package for `import mprun` is in the wheel a second time, in
site-packages, because a wheel can hold no link. The program needs no Python, and the package has the stable ABI, so
one wheel is for every Python 3 (py3-none); it says itself that `import mprun` needs 3.11.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
EXCLUDED = re.compile(r"(.*/)?(\.git|__pycache__)(/.*)?|(build|runs)/.*|PKG-INFO")  # of a tree without a repository


def version() -> str:
    """The one in CMakeLists.txt."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"^project\(mprun VERSION ([0-9.]+)", text, re.MULTILINE)[1]


def setting(name: str) -> str:
    """A string of [project] in pyproject.toml, which Python reads only since 3.11."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return re.search(rf'^{name} = "(.*)"$', text, re.MULTILINE)[1]


def metadata() -> bytes:
    fields = {
        "Metadata-Version": "2.1",
        "Name": setting("name"),
        "Version": version(),
        "Summary": setting("description"),
        "License": setting("license"),
        "Requires-Python": setting("requires-python"),
        "Description-Content-Type": "text/markdown",
    }
    head = "".join(f"{name}: {value}\n" for name, value in fields.items())
    return (head + "\n").encode() + (ROOT / setting("readme")).read_bytes()


# --- the wheel ---


def pack_wheel(prefix: Path, platform: str, folder: Path) -> str:
    """Makes a wheel of an installation, and returns its name."""
    tag = f"py3-none-{platform}"
    stem = f"mprun-{version()}"
    files: dict[str, tuple[bytes, bool]] = {}  # in the wheel -> content, whether it can be run
    for path in sorted(path for path in prefix.rglob("*") if path.is_file()):
        place = path.relative_to(prefix).as_posix()
        content = path.read_bytes(), os.access(path, os.X_OK)
        files[f"{stem}.data/scripts/mprun" if place == "bin/mprun" else f"{stem}.data/data/{place}"] = content
        if place.startswith("lib/mprun/python/mprun/") and "__pycache__" not in place:
            files[place.removeprefix("lib/mprun/python/")] = content
    info = f"{stem}.dist-info"
    files[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes(), False
    files[f"{info}/METADATA"] = metadata(), False
    files[f"{info}/entry_points.txt"] = b"[pytest11]\nmprun.pytest_plugin = mprun.pytest_plugin\n", False
    wheel = f"Wheel-Version: 1.0\nGenerator: mprun\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files[f"{info}/WHEEL"] = wheel.encode(), False
    record = "".join(f"{name},{digest(content)},{len(content)}\n" for name, (content, _) in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode(), False

    name = f"{stem}-{tag}.whl"
    moment = time.gmtime(max(EPOCH, 315532800))[:6]  # a zip file knows no time before 1980
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for place, (content, runs) in files.items():
            entry = zipfile.ZipInfo(place, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if runs else 0o100644) << 16
            archive.writestr(entry, content)
    return name


def digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


# --- the source archive ---


def source_files() -> list[str]:
    """What git tracks; without a repository, as in a source archive, everything."""
    if (ROOT / ".git").exists():
        listing = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
        names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    else:
        names = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")]
    return sorted(name for name in names if (ROOT / name).is_file() and name and not EXCLUDED.fullmatch(name))


def pack_source(folder: Path) -> str:
    stem = f"mprun-{version()}"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:

        def add(name: str, content: bytes, runs: bool) -> None:
            entry = tarfile.TarInfo(f"{stem}/{name}")
            entry.size, entry.mtime, entry.mode = len(content), EPOCH, 0o755 if runs else 0o644
            archive.addfile(entry, io.BytesIO(content))

        add("PKG-INFO", metadata(), False)
        for name in source_files():
            add(name, (ROOT / name).read_bytes(), os.access(ROOT / name, os.X_OK))
    (folder / f"{stem}.tar.gz").write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return f"{stem}.tar.gz"


# --- PEP 517 ---


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    with tempfile.TemporaryDirectory() as folder:
        build, prefix = Path(folder, "build"), Path(folder, "prefix")
        for command in (
            ["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", f"-DMPRUN_PYTHON={sys.executable}"],
            ["cmake", "--build", build],
            ["cmake", "--install", build, "--prefix", prefix, "--strip"],
        ):
            subprocess.run(command, check=True)
        return pack_wheel(prefix, re.sub(r"\W", "_", sysconfig.get_platform()), Path(wheel_directory))


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    return pack_source(Path(sdist_directory))


if __name__ == "__main__":
    prefix, platform, folder = sys.argv[1:]
    pack_wheel(Path(prefix), platform, Path(folder))
    pack_source(Path(folder))
