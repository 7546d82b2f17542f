"""`allocator`: other allocators than the C library's, in every process of a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import RunCommand

LIBRARIES = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc": "libmimalloc.so."}
HERE = [name for name, file in LIBRARIES.items() if list(Path("/usr/lib").glob(f"*/{file}*"))]
needs_all = pytest.mark.skipif(len(HERE) < len(LIBRARIES), reason="needs libraries that configs/prepare names")

# The host has a team of OpenMP and a thread that has allocated when its workers are forked.
SCRIPT = """
import ctypes
import os
import threading

libgomp = ctypes.CDLL("libgomp.so.1")
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
blocks = []


def region():
    libgomp.GOMP_parallel(FUNCTION(lambda _: blocks.append([bytes(size) for size in range(1000)])), None, 2, 0)


def setup():
    region()
    allocated = threading.Event()

    def allocate():
        blocks.append([bytes(4096) for _ in range(1000)])
        allocated.set()
        threading.Event().wait()

    threading.Thread(target=allocate, daemon=True).start()
    allocated.wait()


def run(_):
    region()
    with open("/proc/self/maps") as maps:
        loaded = {line.split("/")[-1].strip() for line in maps if "alloc" in line}
    return [sorted(loaded), len(blocks) >= 4, os.environ["LD_PRELOAD"].split(":")]
"""


@needs_all
@pytest.mark.parametrize("name", LIBRARIES)
def test_workers_are_forked_with_it(run_job: RunCommand, name: str) -> None:
    """From a host with threads; it comes after mprun's own library."""
    spec = {
        "script": "job.py:run",
        "setup": "setup",
        "inputs": {"range": 20},
        "processes": 4,
        "chunk_size": 1,
        "allocator": name,
        "limits": {"tasks_per_worker": 2},
    }
    run = run_job(spec, scripts={"job.py": SCRIPT}).check()
    for (library,), worked, preloaded in run.values():
        assert library.startswith(LIBRARIES[name])
        assert worked
        assert [path.split("/")[-1] for path in preloaded] == ["libmprun_preload.so", preloaded[1].split("/")[-1]]
        assert preloaded[1].split("/")[-1].startswith(LIBRARIES[name])


@needs_all
def test_it_is_shown_before_anything_runs(run_mprun: RunCommand, tmp_path: Path) -> None:
    """With the path of the library, by check and doctor."""
    (tmp_path / "job.json").write_text('{"version": 1, "command": ["true"], "inputs": {"range": 1}}')
    shown = run_mprun("check", "--allocator", "jemalloc", "job.json", cwd=tmp_path)
    assert "jemalloc, /" in shown.stdout
    assert "system, jemalloc, tcmalloc, mimalloc" in run_mprun("doctor").stdout


def test_one_that_is_not_installed_is_refused(run_mprun: RunCommand, tmp_path: Path) -> None:
    """By one error that names the package. Unreadable libraries count as none."""
    (tmp_path / "job.json").write_text('{"version": 1, "command": ["true"], "inputs": {"range": 1}}')
    (tmp_path / "libjemalloc.so.2").write_text("no library")
    env = {"LD_LIBRARY_PATH": str(tmp_path)}
    refused = run_mprun("--allocator", "jemalloc", "job.json", cwd=tmp_path, env=env)
    assert refused.returncode == 2
    assert "does not find libjemalloc.so.2" in refused.stderr
    assert "install libjemalloc2" in refused.stderr
