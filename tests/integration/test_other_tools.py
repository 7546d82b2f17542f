"""The table of mprun.1 for users of other tools: every line is run, and its outcome compared with that of
the other tool itself."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import harness
import pytest
from harness import RunCommand

PAGE = harness.ROOT / "man" / "mprun.1"
FILES = {
    "a.txt": "one\n",
    "b.txt": "two and three\n",
    "list.txt": "a.txt\nb.txt\n",
    "work.sh": 'echo "got $1"\ntest "$1" != 2\n',
    "train.py": "import os, sys\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], *sys.argv[1:])\n",
    "work.py": """
made = 0

def init():
    global made
    made = 1000

def f(number):
    return number * number + made

def g(a, b):
    return a * 10 + b
""",
}
# The call as it stands in the table becomes a value; MADE is what Python would print.
PYTHON = """
import json
from multiprocessing import Pool, get_context
from joblib import Parallel, delayed
from work import f, g, init

if __name__ == "__main__":
    value = {call}
    print(json.dumps(value if isinstance(value, int) else list(value)))
"""


def rows() -> list[tuple[str, str]]:
    """The calls, and their replacements."""
    text = PAGE.read_text(encoding="utf-8").split(".Sh COMING FROM OTHER TOOLS\n")[1].split("\n.Sh ")[0]
    found = re.findall(r'^\.It Li "([^\n]*)"\n\.Bd -literal -compact\n(.*?)\n\.Ed$', text, re.MULTILINE | re.DOTALL)
    assert len(found) == text.count(".It ")
    return found


def theirs(call: str, folder: Path) -> subprocess.CompletedProcess[str]:
    if re.match(r"(parallel|xargs|torchrun) ", call):
        # torch 1.13 does not know the option with a hyphen.
        words: list[str] = ["bash", "-c", call.replace("--max-restarts", "--max_restarts")]
    else:
        (folder / "theirs.py").write_text(PYTHON.format(call=call), encoding="utf-8")
        words = [sys.executable, "theirs.py"]
    for _ in range(3):
        try:
            return subprocess.run(
                words, cwd=folder, env={**os.environ, **harness.library_settings(folder)},
                capture_output=True, text=True, timeout=60 * harness.PATIENCE, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            continue  # a Pool of CPython 3.11 hangs at its end now and then
    raise AssertionError(f"{call} hangs again and again")


def outcome(results: list[dict[str, Any]]) -> Any:
    """The lines that commands or ranks have printed, or the values of a function."""
    ok = [result for result in results if result["status"] == "ok"]
    if ok and isinstance(ok[0]["value"], dict) and "stdout" in ok[0]["value"]:
        return sorted(result["value"]["stdout"] for result in ok)
    return [result["value"] for result in results]


def test_the_table_is_there() -> None:
    assert len(rows()) > 12


@pytest.mark.parametrize(("call", "instead"), rows(), ids=[call for call, _ in rows()])
def test_a_line_of_the_table(call: str, instead: str, run_mprun: RunCommand, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    words = ["job.json"]
    if instead.startswith("mprun "):
        words = shlex.split(instead)[1:]
        instead = '{"command": ["wc", "-c", "{}"], "inputs": {"lines": "list.txt"}}'
    (tmp_path / "job.json").write_text(instead, encoding="utf-8")
    fails = "work.sh" in call
    source = {"stdin": FILES["list.txt"]} if call.endswith("<list.txt") else {}
    run = run_mprun("--set", 'output.dir="out"' if "--output" not in words else "seed=1", *words, **source)
    assert run.returncode == (1 if fails else 0), run
    lines = (tmp_path / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    results = [json.loads(line) for line in lines]
    if call.startswith("torchrun"):
        logs = [path.read_text(encoding="utf-8") for path in (tmp_path / "out" / "logs").glob("worker-*.out")]
        found: Any = sorted(logs)
    else:
        found = outcome(results)
    if call.split()[0] in ("parallel", "torchrun") and shutil.which(call.split()[0]) is None:
        pytest.skip(f"{call.split()[0]} is not installed")
    other = theirs(call, tmp_path)
    if call.startswith("torchrun") and other.returncode != 0:  # those of Debian are broken: they start nothing
        assert "Error" in other.stderr, other
        arguments = call.partition(" train.py")[2]
        assert found == [f"rank {rank} of 2{arguments}\n" for rank in range(2)]
        return
    if call[0].islower() and not call.startswith("get_context"):
        expected: Any = sorted(other.stdout.splitlines(keepends=True))
        if fails:  # what failed has printed too, but has no value
            expected = [line for line in expected if line != "got 2\n"]
            assert other.returncode != 0
    else:
        expected = json.loads(other.stdout)
        expected = expected if isinstance(expected, list) else [expected]
        if "unordered" in call:
            found, expected = sorted(found), sorted(expected)
    assert found == expected, (run, other)


def test_parallel_goes_on_from_our_joblog(run_mprun: RunCommand, tmp_path: Path) -> None:
    """GNU parallel's --resume reads joblog.tsv: what is in it is not run again."""
    if shutil.which("parallel") is None:
        pytest.skip("parallel is not installed")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    spec = {"command": ["wc", "-c", "{}"], "inputs": {"items": ["a.txt"]}, "output": {"dir": "out"}}
    (tmp_path / "job.json").write_text(json.dumps(spec), encoding="utf-8")
    run_mprun("job.json").check()
    words = ["parallel", "--resume", "--joblog", "out/joblog.tsv", "wc", "-c", "{}", ":::", "a.txt", "b.txt"]
    run = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == "14 b.txt\n", run
