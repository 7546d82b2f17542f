"""summary.json conforms to configs/summary.schema.json, whatever became of a run."""

from __future__ import annotations

import json
from typing import Any

import harness
import jsonschema
import pytest
from harness import RunCommand

SCHEMA = json.loads((harness.ROOT / "configs" / "summary.schema.json").read_text(encoding="utf-8"))
JOB = """
import os
import sys
import threading

import numpy


def run(number):
    import mprun

    if number == 1:
        raise ValueError("no")
    if number == 2:
        os._exit(3)
    if number == 3:
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    mprun.shared["sums"][number] = number
    return numpy.full(3, number)
"""
FUNCTION: dict[str, Any] = {
    "script": "job.py:run",
    "inputs": {"range": 6},
    "processes": 2,
    "retries": {"on_hang": 0},
    "shared": {"sums": {"dtype": "float64", "shape": [6]}},
}
JOBS = {
    "function": (FUNCTION, 1),
    "safetensors": ({**FUNCTION, "output": {"tensors": "safetensors"}}, 1),
    "stopped": ({**FUNCTION, "on_error": "stop", "retries": 0}, 1),
    "commands": ({"command": ["sh", "-c", "[ {} = 2 ] && kill -9 $$; exit {}"], "inputs": {"range": 3}}, 1),
    "ranks": ({"script": "ranks.py", "processes": 2}, 1),
    "no-launch": ({"script": "broken.py:run", "inputs": {"range": 2}}, 3),
}
SCRIPTS = {
    "job.py": JOB,
    "ranks.py": "import os\nassert os.environ['RANK'] == '0'\n",
    "broken.py": "import not_there\n\n\ndef run(number):\n    return number\n",
}


@pytest.mark.parametrize("name", JOBS)
def test_summaries_are_as_the_schema_says(name: str, run_job: RunCommand) -> None:
    spec, code = JOBS[name]
    run = run_job(spec, scripts=SCRIPTS).check(code)
    summary = run.summary()
    jsonschema.validate(summary, SCHEMA)
    counts = summary["counts"]
    kinds = [counts[key] for key in ("ok", "failed", "cancelled", "not_run")]
    assert counts["total"] is None or counts["total"] == sum(kinds)
    filled = {key for key in ("hangs", "tensors", "shared", "notices", "command_exits") if summary.get(key)}
    assert {"function": {"hangs", "tensors", "shared"}, "commands": {"command_exits"}}.get(name, set()) <= filled


def test_an_invalid_summary_is_refused(run_job: RunCommand) -> None:
    """The schema allows nothing that it does not describe."""
    summary = run_job({"command": ["true"], "inputs": {"range": 1}}).check().summary()
    for change in ({"more": 1}, {"counts": {}}, {"exit_code": "0"}, {"processes": [{"pid": 1}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**summary, **change}, SCHEMA)
