"""mprun init: a first spec for a script, which is parsed and never run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from harness import RunCommand

POOL = """
from multiprocessing import Pool
import glob

def helper(): pass
def square(x, more=1): return x * x
def other(x): return x

if __name__ == "__main__":
    names = {inputs}
    with Pool(4) as pool:
        print(pool.{method}({function}, names))
"""
SCRIPTS: dict[str, tuple[str, dict[str, Any]]] = {
    "range": (
        POOL.format(inputs="range(100)", method="map", function="square"),
        {"function": "square", "inputs": {"range": 100}},
    ),
    "glob": (
        POOL.format(inputs="sorted(glob.glob('data/*.txt'))", method="imap_unordered", function="other"),
        {"function": "other", "inputs": {"glob": "data/*.txt"}},
    ),
    "items": (
        POOL.format(inputs="[(1, 2), (3, 4)]", method="starmap", function="square"),
        {"function": "square", "call": "args", "inputs": {"items": [[1, 2], [3, 4]]}},
    ),
    "unknown inputs": (
        POOL.format(inputs="list(read())", method="map", function="square"),
        {"function": "square", "inputs": {"range": 10}},
    ),
    "one function": ("def double(x):\n    return 2 * x\n", {"function": "double", "inputs": {"range": 10}}),
    "a usual name": (
        "def load(path): pass\ndef evaluate(image): return image\n",
        {"function": "evaluate", "inputs": {"range": 10}},
    ),
    "ranks": (
        "import torch.distributed as dist\ndef main(x): pass\ndist.init_process_group('gloo')\n",
        {"processes": 2},
    ),
    "no function": ("print('hello')\n", {"processes": 2}),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_spec_that_is_written(name: str, run_mprun: RunCommand, tmp_path: Path) -> None:
    text, expected = SCRIPTS[name]
    (tmp_path / "job.py").write_text(text, encoding="utf-8")
    run = run_mprun("init", "job.py").check()
    assert "next: mprun check job.json, then mprun job.json" in run.stdout
    spec = json.loads((tmp_path / "job.json").read_text(encoding="utf-8"))
    assert spec == {"version": 1, "script": "job.py", **expected}
    assert ("only a place to put them" in run.stdout) == (spec.get("inputs") == {"range": 10})
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").touch()
    run_mprun("check", "job.json").check()


def test_it_runs_at_once(run_mprun: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(SCRIPTS["range"][0], encoding="utf-8")
    run_mprun("init", "job.py").check()
    assert "100 ok" in run_mprun("job.json").check().stderr


def test_a_function_by_name(run_mprun: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("def f(x): pass\ndef g(a, b): pass\n", encoding="utf-8")
    run_mprun("init", "job.py:g").check()
    spec = json.loads((tmp_path / "job.json").read_text(encoding="utf-8"))
    assert (spec["function"], spec["call"], spec["inputs"]) == ("g", "args", {"items": [[0, 0]]})


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("def f(x): pass\ndef g(x): pass\n", ["job.py"], "several functions; name one, as in job.py:f"),
        ("def f(a, b): pass\n", ["job.py"], "no function that takes one argument; name one, as in job.py:f"),
        ("def f(x): pass\n", ["job.py:h"], "no function h at its top level; it has f"),
        ("def f(x: pass\n", ["job.py"], "is no Python 3."),
        ("", ["none.py"], "none.py: No such file or directory"),
        ("", ["-n", "2", "job.py"], "--processes 2 is only valid with a job"),
        ("", [], "init: SCRIPT.py is required"),
    ],
)
def test_what_init_refuses(
    text: str, words: list[str], message: str, run_mprun: RunCommand, tmp_path: Path
) -> None:
    (tmp_path / "job.py").write_text(text, encoding="utf-8")
    assert message in run_mprun("init", *words).check(2).stderr
    assert not (tmp_path / "job.json").exists()


def test_nothing_is_overwritten_or_run(run_mprun: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("open('ran', 'w')\ndef f(x): pass\n", encoding="utf-8")
    (tmp_path / "job.json").write_text("mine\n", encoding="utf-8")
    assert "job.json is there already" in run_mprun("init", "job.py").check(2).stderr
    assert (tmp_path / "job.json").read_text(encoding="utf-8") == "mine\n"
    assert not (tmp_path / "ran").exists()
