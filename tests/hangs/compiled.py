"""How the programs of the cases and controls are run; builds the C programs while a test runs."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import harness

INTERPRETERS = {
    ".py": harness.MPRUN_PYTHON,
    ".sh": "sh",
    ".bash": "bash",
    ".js": "node",
    ".pl": "perl",
    ".rb": "ruby",
    ".java": "java",
    ".php": "php",
    ".scm": "guile",
    ".lua": "lua5.4",
}
COMPILERS = {".c": "cc", ".cc": "g++", ".go": "go"}  # of the controls; a case names its own
# What is not everywhere, by the program that shows that it is there. To run a source, java needs the compiler.
OPTIONAL = {
    ".js": "node",
    ".rb": "ruby",
    ".java": "javac",
    ".rs": "rustc",
    ".go": "go",
    ".php": "php",
    ".scm": "guile",
    ".lua": "lua5.4",
}
OPTIONAL_PACKAGES = (  # emulated machines have few
    "eventlet",
    "filelock",
    "gevent",
    "grpc",
    "joblib",
    "mpi4py",
    "numpy",
    "torch",
    "trio",
    "uvloop",
    "zmq",
)
NEEDED = {  # what these programs run
    "jobserver_late_token.sh": "make",
    "jobserver_token.sh": "make",
    "make_reads_fifo.sh": "make",
    "make_slow_rule.sh": "make",
    "node_unread_output.py": "node",
}
CASES = Path(__file__).resolve().parent / "cases"
CONTROLS = Path(__file__).resolve().parent / "controls"


def why_not_installed(program: str, compiler: str | None = None) -> str:
    """Why the program of that name cannot be run here; "" if it can. `compiler`: what it is built with."""
    needed = compiler or NEEDED.get(program) or OPTIONAL.get("." + program.rpartition(".")[2])
    return f"{needed} is not installed" if needed and shutil.which(needed) is None else ""


def why_not_importable(source: Path) -> str:
    """Why a program cannot be run here if it is in Python; "" if it can."""
    if source.suffix != ".py":
        return ""
    text = source.read_text(encoding="utf-8")
    imported = re.findall(r"^ *(?:import|from) (\w+)", text, re.MULTILINE)
    missing = [name for name in OPTIONAL_PACKAGES if name in imported and find_spec(name) is None]
    if missing:
        return f"{missing[0]} is not installed"
    return "torch was built without TensorPipe" if "init_rpc(" in text and not _has_tensorpipe() else ""


@functools.cache
def _has_tensorpipe() -> bool:
    """Whether torch has the transport of its rpc. To import torch takes seconds."""
    torch = find_spec("torch")
    assert torch is not None and torch.origin is not None
    library = Path(torch.origin).parent / "lib/libtorch_python.so"
    return b"_TensorPipeRpcBackendOptionsBase" in library.read_bytes()


def build(
    source: str | Path,
    folder: Path,
    *options: str,
    compiler: str = "cc",
    libraries: Sequence[str] = (),
) -> Path:
    """Compiles cases/SOURCE, or the file of that path, into `folder`; returns the result.

    With OpenMP where the compiler uses libgomp: the cases are about that one.
    """
    path = CASES / source
    program = folder / f"{path.stem}-{compiler}"
    if compiler == "rustc":
        subprocess.run([compiler, "-O", "-o", str(program), str(path)], check=True)
        return program
    if compiler == "go":
        environment = {**os.environ, "CGO_ENABLED": "0"}
        subprocess.run([compiler, "build", "-o", str(program), str(path)], check=True, env=environment)
        return program
    if compiler == "gfortran":
        subprocess.run([compiler, "-O1", "-fopenmp", "-J", str(folder), "-o", str(program), str(path)], check=True)
        return program
    command = [compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", *options]
    if path.suffix == ".cc":
        command.append("-std=c++20")
    elif compiler != "clang":
        command.append("-fopenmp")
    subprocess.run([*command, "-o", str(program), str(path), *libraries], check=True)
    return program


def libraries_for(program: str, folder: Path) -> list[str]:
    """What this program takes as its first argument, made in `folder`; of most, nothing."""
    if program == "two_libgomps.c":
        return [str(copy_libgomp(folder))]
    if program.startswith("cuda_"):
        driver = folder / "libcuda.so.580.1"
        source = CASES.parent / "cuda_driver.c"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-pthread", "-o", str(driver), str(source)], check=True)
        return [str(driver)]
    return []


def copy_libgomp(folder: Path) -> Path:
    """A second libgomp under a file name and soname of its own, as wheels bundle it."""
    found = subprocess.run(
        ["cc", "-print-file-name=libgomp.so.1"], check=True, capture_output=True, text=True
    )
    name, other = b"libgomp.so.1\0", b"libgom2.so.1\0"
    library = Path(found.stdout.strip()).read_bytes()
    assert name in library
    copy = folder / other[:-1].decode()
    copy.write_bytes(library.replace(name, other))
    return copy
