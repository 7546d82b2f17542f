"""The type stubs declare what exists, and nothing else; a script that imports mprun runs alone."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import harness

PACKAGE = Path(harness.MPRUN_BIN).resolve().parent.parent / "lib" / "mprun" / "python"
SHOW = """
import json, mprun
from mprun import _mprun

public = set(mprun.__all__) | {"dict"} | set(mprun._STARTS)
members = {name: sorted(key for key in vars(getattr(_mprun, name)) if not key.startswith("_"))
           for name in ("deadline", "SyncCounter", "SyncLock", "SyncBarrier", "SyncQueue", "SyncDict")}
print(json.dumps({"public": sorted(public), "found": [getattr(mprun, name) is not None for name in public],
                  "members": members}))
"""
ALONE = """
import mprun

with mprun.deadline(30, "work"):
    print(mprun.rank(), mprun.world_size(), list(mprun.shared))
mprun.result({"loss": 1})
"""


def python(text: str) -> str:
    words = [sys.executable, "-B", "-c", text]
    run = subprocess.run(words, env={"PYTHONPATH": str(PACKAGE)}, capture_output=True, text=True, timeout=60, check=True)
    return run.stdout


def stub(name: str) -> ast.Module:
    return ast.parse((PACKAGE / "mprun" / name).read_text(encoding="utf-8"))


def test_the_stubs_declare_what_exists() -> None:
    there = json.loads(python(SHOW))
    assert all(there["found"])
    declared = set()
    for node in stub("__init__.pyi").body:
        if isinstance(node, ast.ImportFrom):
            declared |= {alias.asname for alias in node.names if alias.asname}
        elif isinstance(node, ast.FunctionDef):
            declared.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            declared.add(node.target.id)
    assert declared == set(there["public"])
    classes = [node for node in stub("_mprun.pyi").body if isinstance(node, ast.ClassDef)]
    members = {
        node.name: sorted(
            item.name for item in node.body if isinstance(item, ast.FunctionDef) and not item.name.startswith("_")
        )
        for node in classes
    }
    assert members == there["members"]
    assert (PACKAGE / "mprun" / "py.typed").exists()


def test_a_script_runs_alone() -> None:
    assert python(ALONE) == "0 1 []\n"
