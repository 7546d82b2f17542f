"""A host that dies just after it forked: the worker ended with its host, which does not count as a failed start."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import RunCommand
from test_sick_surroundings import sick


@pytest.mark.parametrize("start_method", ["fork", "forkserver"])
def test_workers_of_a_dead_host_are_started_again(run_job: RunCommand, tmp_path: Path, start_method: str) -> None:
    deaths = 5
    env = {"LD_PRELOAD": str(sick("mortal_host", tmp_path)), "HOSTS": str(deaths), "HOSTS_FOLDER": str(tmp_path)}
    spec = {"script": "job.py:run", "start_method": start_method, "processes": 1, "inputs": {"range": 4}}
    run = run_job(spec, scripts={"job.py": "def run(number):\n    return number\n"}, env=env).check()
    assert run.values() == [0, 1, 2, 3]
    ends = [(process["role"], process["signal"]) for process in run.summary()["processes"] if not process["expected"]]
    assert sorted(ends) == [("host", 9)] * deaths + [("worker", 9)] * deaths
