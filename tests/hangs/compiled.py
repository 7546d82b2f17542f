"""Builds the C programs of the cases while a test runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

CASES = Path(__file__).resolve().parent / "cases"


def build(source: str, folder: Path, *options: str) -> Path:
    """Compiles cases/SOURCE with OpenMP into `folder`; returns what came out."""
    program = folder / Path(source).stem
    command = ["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-fopenmp", *options]
    subprocess.run([*command, "-o", str(program), str(CASES / source)], check=True)
    return program


def copy_libgomp(folder: Path) -> Path:
    """A second libgomp under a name of its own inside and out, as wheels bundle it."""
    found = subprocess.run(
        ["cc", "-print-file-name=libgomp.so.1"], check=True, capture_output=True, text=True
    )
    name, other = b"libgomp.so.1\0", b"libgom2.so.1\0"
    library = Path(found.stdout.strip()).read_bytes()
    assert name in library
    copy = folder / other[:-1].decode()
    copy.write_bytes(library.replace(name, other))
    return copy
