"""`--metrics FILE`: what a running job writes for a monitoring system, parsed as strictly as OpenMetrics 1.0 is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from harness import EVENTS, RunCommand, StartCommand, wait_until

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)")
SUFFIX = {"gauge": "", "counter": "_total"}

Samples = dict[tuple[str, frozenset[str]], float]


class Wrong(ValueError):
    """The text is no OpenMetrics."""


class Family(NamedTuple):
    name: str
    metadata: dict[str, str]  # TYPE, HELP


def parse(text: str) -> Samples:
    """The samples, by name and labels (`state="ok"`). Every family needs TYPE and HELP, before its samples."""
    if not text.endswith("\n# EOF\n"):
        raise Wrong("does not end with # EOF")
    families: list[Family] = []
    samples: Samples = {}
    for line in text.removesuffix("# EOF\n").splitlines():
        if metadata := re.fullmatch(rf"# (TYPE|HELP) ({NAME}) (\S.*)", line):
            add_metadata(families, *metadata.groups())
        elif sample := SAMPLE.fullmatch(line):
            add_sample(families, samples, *sample.groups())
        else:
            raise Wrong(f"neither metadata nor sample: {line!r}")
    return samples


def add_metadata(families: list[Family], kind: str, name: str, value: str) -> None:
    if not families or families[-1].name != name:
        if any(family.name == name for family in families):
            raise Wrong(f"{name} is in two places")
        families.append(Family(name, {}))
    if kind in families[-1].metadata:
        raise Wrong(f"{name} has two {kind}")
    if kind == "TYPE" and value not in SUFFIX:
        raise Wrong(f"{name}: unexpected type {value}")
    families[-1].metadata[kind] = value


def add_sample(families: list[Family], samples: Samples, name: str, labels: str | None, value: str) -> None:
    family = families[-1] if families else Family("", {})
    if family.metadata.keys() != {"TYPE", "HELP"}:
        raise Wrong(f"{name} comes before its TYPE and HELP")
    if name != family.name + SUFFIX[family.metadata["TYPE"]]:
        raise Wrong(f"{name} is no sample of {family.name}")
    names = [label.partition("=")[0] for label in re.findall(LABEL, labels or "")]
    if len(set(names)) != len(names):
        raise Wrong(f"{name} has a label twice: {labels}")
    key = (name, frozenset(re.findall(LABEL, labels or "")))
    if key in samples:
        raise Wrong(f"{name} is there twice with {labels}")
    if family.metadata["TYPE"] == "counter" and float(value) < 0:
        raise Wrong(f"{name} is a counter below 0")
    samples[key] = float(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# TYPE a gauge\n# HELP a b\na 1\n",
        "# TYPE a gauge\n# HELP a b\na 1\n# EOF",
        "# TYPE a gauge\na 1\n# EOF\n",
        "# TYPE a gauge\n# HELP a b\na 1\na 1\n# EOF\n",
        "# TYPE a gauge\n# HELP a b\na_total 1\n# EOF\n",
        "# TYPE a counter\n# HELP a b\na 1\n# EOF\n",
        "# TYPE a counter\n# HELP a b\na_total -1\n# EOF\n",
        "# TYPE a gauge\n# HELP a b\na one\n# EOF\n",
        "# TYPE a gauge\n# HELP a b\na{b=1} 1\n# EOF\n",
        '# TYPE a gauge\n# HELP a b\na{b="1",b="2"} 1\n# EOF\n',
        '# TYPE a gauge\n# HELP a b\na{b="\\x"} 1\n# EOF\n',
        "# TYPE a gauge\n# HELP a b\na 1\n\n# EOF\n",
    ],
)
def test_the_parser_is_strict(text: str) -> None:
    with pytest.raises(Wrong):
        parse(text)


JOB = """
from events import wait_for


def work(number):
    if number == 1:
        raise ValueError("one")
    if number == 2:
        wait_for("go_on", seconds=60)
    return number
"""


def value_of(samples: Samples, name: str, job: str = "job", **label: str) -> float:
    labels = {"job": job, **label}
    return samples[name, frozenset(f'{key}="{value}"' for key, value in labels.items())]


def test_a_job_writes_its_figures(start_job: StartCommand, tmp_path: Path) -> None:
    file = tmp_path / "job.prom"
    spec = {"script": "job.py", "function": "work", "inputs": {"range": 4}, "processes": 2}
    job = start_job(spec, "--metrics", file, scripts={"job.py": JOB, "events.py": EVENTS})

    def three_have_ended() -> Samples | None:
        samples = parse(file.read_text(encoding="utf-8")) if file.exists() else {}
        return samples if samples and value_of(samples, "mprun_tasks", state="ok") == 2 else None

    samples = wait_until(three_have_ended, 60)
    assert value_of(samples, "mprun_job_running") == 1
    assert value_of(samples, "mprun_tasks", state="failed") == 1
    assert value_of(samples, "mprun_tasks", state="running") == 1
    assert value_of(samples, "mprun_tasks", state="waiting") == 0
    assert value_of(samples, "mprun_workers", state="busy") == 1
    assert value_of(samples, "mprun_workers", state="idle") == 1
    wait_until(lambda: value_of(parse(file.read_text()), "mprun_memory_bytes") > 1 << 20, 60)
    (tmp_path / "go_on").write_text("\n", encoding="utf-8")
    job.wait().check(1)
    samples = parse(file.read_text(encoding="utf-8"))
    assert value_of(samples, "mprun_job_running") == 0
    assert value_of(samples, "mprun_tasks", state="ok") == 3
    assert value_of(samples, "mprun_tasks", state="running") == 0
    assert value_of(samples, "mprun_task_retries_total") == 0
    assert value_of(samples, "mprun_tasks_per_second") >= 0
    assert value_of(samples, "mprun_job_seconds") > 0
    assert not list(tmp_path.glob("*.tmp"))


def test_hangs_and_retries_are_counted(run_job: RunCommand, tmp_path: Path) -> None:
    script = """
import os


def work(number):
    if os.environ["MPRUN_ATTEMPT"] == "1":
        os.read(os.pipe()[0], 1)
"""
    spec = {"script": "hangs.py", "function": "work", "inputs": {"range": 1}, "output": {"metrics": "m.prom"}}
    run_job(spec, scripts={"hangs.py": script}).check()
    samples = parse((tmp_path / "m.prom").read_text(encoding="utf-8"))
    verdicts = ("deadlock", "partial-deadlock", "orphaned-lock", "stalled", "overdue")
    hangs = {verdict: value_of(samples, "mprun_hangs_total", verdict=verdict) for verdict in verdicts}
    assert hangs["deadlock"] + hangs["partial-deadlock"] >= 1
    assert value_of(samples, "mprun_task_retries_total") == 1


def test_another_parser_reads_it(run_job: RunCommand, tmp_path: Path) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    spec = {"command": ["true"], "inputs": {"range": 3}}
    run_job(spec, "--metrics", "m.prom").check()
    families = list(parser.text_string_to_metric_families((tmp_path / "m.prom").read_text(encoding="utf-8")))
    assert "mprun_tasks" in [family.name for family in families]


def test_a_file_that_cannot_be_written(run_job: RunCommand, tmp_path: Path) -> None:
    spec = {"command": ["true"], "inputs": {"range": 1}}
    refused = run_job(spec, "--metrics", "no/such/m.prom").check(2)
    assert "/output/metrics: no such directory" in refused.stderr


def test_it_may_change_when_a_run_is_resumed(run_job: RunCommand, run_mprun: RunCommand, tmp_path: Path) -> None:
    run = run_job({"command": ["true"], "inputs": {"range": 1}}, "--metrics", "a.prom").check()
    run_mprun("resume", "--metrics", "b.prom", run.run_dir).check()
    for name in ("a.prom", "b.prom"):
        samples = parse((tmp_path / name).read_text(encoding="utf-8"))
        assert value_of(samples, "mprun_tasks", state="ok") == 1
        assert value_of(samples, "mprun_job_running") == 0
