"""The command line, the three layers of settings, `check`, and where things are put."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import RunCommand

SCRIPT = """
import os
import sys

import mprun


def setup():
    open("launched", "w").close()


def run(number):
    return [number, mprun.world_size(), sys.prefix, os.environ.get("LAYER")]
"""

SPEC: dict[str, Any] = {"script": "job.py:run", "setup": "setup", "inputs": {"range": 3}}


def resolved(run: harness.Run) -> dict[str, Any]:
    """The spec as it was used."""
    return json.loads((run.run_dir / "job.json").read_text())


def write_config(folder: Path, fields: dict[str, Any]) -> None:
    """The user's configuration file in a configuration directory."""
    (folder / "mprun").mkdir(parents=True)
    (folder / "mprun/config.json").write_text(json.dumps(fields))


# --- layers ------------------------------------------------------------------------------------


def test_precedence(run_job: RunCommand, tmp_path: Path) -> None:
    """Command line > spec > user configuration > defaults, field by field."""
    write_config(
        tmp_path / "home/.config",
        {
            "processes": 3,
            "order": "completion",
            "seed": 5,
            "retries": {"on_error": 4},
            "limits": {"grace_seconds": 7, "join_seconds": 8},
            "env": {"LAYER": "config", "CONFIG": "1"},
        },
    )
    spec = {
        **SPEC,
        "processes": 2,
        "order": "input",
        "limits": {"grace_seconds": 9},
        "env": {"LAYER": "spec"},
    }
    run = run_job(spec, "--processes", "1", scripts={"job.py": SCRIPT}).check()
    used = resolved(run)
    assert used["processes"] == 1  # the command line
    assert used["order"] == "input"  # the spec
    assert used["seed"] == 5  # the configuration
    assert used["chunk_size"] == "auto"  # the default
    assert used["retries"] == {"on_error": 4, "on_death": 1, "on_hang": 1, "delay": 0, "backoff": 1}
    assert used["limits"] == {"grace_seconds": 9, "join_seconds": 8, "heartbeat_seconds": 60}
    assert used["env"] == {"LAYER": "spec", "CONFIG": "1"}
    assert run.values() == [[number, 1, used_prefix(run), "spec"] for number in range(3)]
    run = run_job(SPEC).check()
    assert resolved(run)["processes"] == 3
    assert {value[3] for value in run.values()} == {"config"}


def used_prefix(run: harness.Run) -> str:
    """sys.prefix of the workers."""
    return run.values()[0][2]


def test_xdg_config_home(run_job: RunCommand, tmp_path: Path) -> None:
    """It replaces ~/.config."""
    write_config(tmp_path / "home/.config", {"seed": 1})
    write_config(tmp_path / "xdg", {"seed": 2})
    files = {"job.py": SCRIPT}
    run = run_job(SPEC, scripts=files, env={"XDG_CONFIG_HOME": str(tmp_path / "xdg")}).check()
    assert resolved(run)["seed"] == 2
    assert resolved(run_job(SPEC).check())["seed"] == 1
    run = run_job(SPEC, env={"XDG_CONFIG_HOME": str(tmp_path / "nothing")}).check()
    assert "seed" not in resolved(run)


def test_errors_in_the_configuration(run_job: RunCommand, tmp_path: Path) -> None:
    write_config(tmp_path / "home/.config", {"procesess": 1})
    run = run_job(SPEC, scripts={"job.py": SCRIPT}).check(2)
    assert re.search(r"mprun/config\.json:1: /procesess: .*", run.stderr)
    assert 'did you mean "processes"' in run.stderr
    (tmp_path / "home/.config/mprun/config.json").write_text("{")
    assert re.search(r"mprun/config\.json:1:\d", run_job(SPEC).check(2).stderr)


def test_no_configuration_from_the_current_directory(
    run_job: RunCommand, tmp_path: Path
) -> None:
    write_config(tmp_path, {"seed": 1})
    write_config(tmp_path / ".config", {"seed": 1})
    run = run_job(SPEC, scripts={"job.py": SCRIPT}, env={"XDG_CONFIG_HOME": ""}).check()
    assert "seed" not in resolved(run)


def test_paths_belong_to_the_layer_that_names_them(run_job: RunCommand, tmp_path: Path) -> None:
    """In the spec relative to the spec, on the command line relative to the current directory."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/job.py").write_text("def run(line):\n    return 'of the spec ' + line\n")
    (tmp_path / "jobs/in.txt").write_text("spec\n")
    (tmp_path / "jobs/mine.json").write_text(
        json.dumps(
            {
                "script": "job.py:run",
                "python": harness.MPRUN_PYTHON,
                "inputs": {"lines": "in.txt"},
            }
        )
    )
    (tmp_path / "in.txt").write_text("line\n")
    run = run_job(tmp_path / "jobs/mine.json").check()
    assert run.values() == ["of the spec spec"]
    run = run_job(tmp_path / "jobs/mine.json", "--set", 'inputs={"lines": "in.txt"}').check()
    assert run.values() == ["of the spec line"]


# --- options -----------------------------------------------------------------------------------

OPTIONS: list[tuple[list[str], str, Any]] = [
    (["-n", "2"], "processes", 2),
    (["--processes=3"], "processes", 3),
    (["--start-method", "spawn"], "start_method", "spawn"),
    (["--device", "cpu"], "device", "cpu"),
    (["--chunk-size", "5"], "chunk_size", 5),
    (["--chunk-size", "auto"], "chunk_size", "auto"),
    (["--order", "completion"], "order", "completion"),
    (["--retries", "2"], "retries", {"on_error": 2, "on_death": 2, "on_hang": 2, "delay": 0, "backoff": 1}),
    (["--task-timeout", "90s"], "limits.task_seconds", "90s"),
    (["--job-timeout", "60"], "limits.job_seconds", 60),
    (["--join-timeout", "1.5"], "limits.join_seconds", 1.5),
    (["--on-error", "stop"], "on_error", "stop"),
    (["--threads-per-worker", "2"], "threads_per_worker", 2),
    (["--progress", "never"], "progress", "never"),
    (["--view", "workers"], "view", "workers"),
    (["--balance", "static"], "balance", "static"),
    (["--set", "limits.grace_seconds=2"], "limits.grace_seconds", 2),
    (["--set", "seed=7"], "seed", 7),
    (["--set", 'env={"A": "b=c"}'], "env.A", "b=c"),
    (["--set", 'call="item"', "--set", "max_failures=3"], "max_failures", 3),
    (["--retries", "3", "--set", "retries.delay=0.5"], "retries.delay", 0.5),
    (["--retries", "3", "--set", "retries.delay=0.5"], "retries.on_hang", 3),
    (["--set", "output.pad.0=[4]"], "output.pad.0", [4]),
    (["--set", "retries.on_death=0", "--set", "retries.on_error=3"], "retries.on_error", 3),
]


@pytest.mark.parametrize(("words", "field", "value"), OPTIONS, ids=lambda v: None)
def test_an_option_is_a_field(
    run_job: RunCommand, words: list[str], field: str, value: Any
) -> None:
    run = run_job(SPEC, *words, scripts={"job.py": SCRIPT}).check()
    found: Any = resolved(run)
    for key in field.split("."):
        found = found[key]
    assert found == value
    assert json.loads(json.dumps(resolved(run))) == resolved(run)


def test_options_after_the_spec(run_mprun: RunCommand, tmp_path: Path) -> None:
    """And `run` as a word of its own."""
    (tmp_path / "job.py").write_text(SCRIPT)
    (tmp_path / "job.json").write_text(json.dumps({**SPEC, "python": harness.MPRUN_PYTHON}))
    for number, words in enumerate(
        (["job.json", "-n", "1"], ["run", "job.json", "-n", "1"], ["-n", "1", "run", "job.json"])
    ):
        run_mprun(*words, "--output", f"out-{number}").check()
        used = json.loads((tmp_path / f"out-{number}/job.json").read_text())
        assert used["processes"] == 1


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (["--no-such-option"], "no-such-option"),
        (["-n"], "processes"),
        (["-n", "zero"], r"/processes.*--processes zero|--processes zero.*/processes"),
        (["-n", "0"], r"--processes 0"),
        (["-n", ""], r'--processes: found "", allowed: N\|auto'),
        (["--shard", ""], r'--shard: found "", allowed: I/N'),
        (["--task-timeout", ""], r'--task-timeout: found "", allowed: S'),
        (["--log-level", ""], r'--log-level: found "", allowed: LEVEL'),
        (["--order", "sideways"], r"--order sideways"),
        (["--retries", "-1"], r"retries"),
        (["--task-timeout", "soon"], r"task_seconds"),
        (["--set", "seed"], "KEY=JSON"),
        (["--set", "=1"], "KEY=JSON"),
        (["--set", "order=input"], "not JSON.*quotes"),
        (["--set", "no.such.key=1"], "unknown key"),
        (["--set", "limits.grace_second=1"], 'did you mean "grace_seconds"'),
        (["--set", "inputs.range.4000000000=1"], r"/inputs/range: found \{.*allowed: a whole number"),
        (["--set", "limits=3", "--set", "limits.grace_seconds=1"], "limits"),
        (["extra.json"], "extra"),
        (["-d", "event"], "event.*allowed: events"),
    ],
    ids=str,
)
def test_wrong_options(run_job: RunCommand, words: list[str], pattern: str) -> None:
    run = run_job(SPEC, *words, scripts={"job.py": SCRIPT}).check(2)
    assert re.search(pattern, run.stderr, re.DOTALL), run
    assert not run.run_dir.exists()
    assert not (run.run_dir.parent / "launched").exists()


def test_help_fits_a_screen(run_mprun: RunCommand) -> None:
    """Everything it mentions exists; test_examples and others try the commands."""
    shown = run_mprun("-h").check().stdout
    assert run_mprun("--help").check().stdout == shown
    lines = shown.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    everything = run_mprun("--help-all").check().stdout
    options = re.findall(r"^  (-[^ ,]+(?:, -\S+)?) (\S+)", shown, re.MULTILINE)
    assert len(options) >= 5
    for names, value in options:
        assert re.search(rf"^  {re.escape(names.replace(', ', ','))} {re.escape(value)}( |$)", everything, re.MULTILINE)
    words = re.findall(r"^  mprun ([a-z]+)\b(?!\.)", shown, re.MULTILINE)
    assert {"resume", "report", "inspect", "check", "doctor"} == set(words)
    for word in words:
        assert re.search(rf"^ +mprun (\[.*\] )?{word}\b", everything, re.MULTILINE)


def test_help_and_version(run_mprun: RunCommand) -> None:
    run = run_mprun("--help-all").check()
    assert run.stderr == ""
    for option in ("--start-method", "--set", "--results", "--explain", "--summary-json"):
        assert option in run.stdout
    assert re.fullmatch(r"mprun \d+\.\d+(\.\d+)?( \([0-9a-f]{12}(-dirty)?\))?\n", run_mprun("--version").check().stdout)


@pytest.mark.parametrize("option", ["-d", "--debug"])
def test_debug_events(run_job: RunCommand, option: str) -> None:
    """A log of the scheduler's events and actions, written only on request."""
    run = run_job(SPEC, option, "events", scripts={"job.py": SCRIPT}).check()
    lines = (run.run_dir / "events.log").read_text().splitlines()
    assert lines[0] == "mprun-events 3"
    assert lines[1].startswith("policy workers=")
    times = [int(line.split()[0]) for line in lines[2:] if line[0] != " "]
    assert times == sorted(times)
    ends = [line for line in lines if line.startswith("  EndTask")]
    assert len(ends) == 3
    assert all(" status=ok " in line for line in ends)
    assert not (run_job(SPEC, scripts={"job.py": SCRIPT}).check().run_dir / "events.log").exists()


def test_summary_json(run_job: RunCommand) -> None:
    """On stdout, and nothing else there."""
    run = run_job(SPEC, "--summary-json", scripts={"job.py": SCRIPT}).check()
    assert json.loads(run.stdout) == run.summary()
    summary = run.summary()
    assert summary["counts"] == {
        "total": 3,
        "ok": 3,
        "failed": 0,
        "cancelled": 0,
        "not_run": 0,
        "retried": 0,
    }
    assert (summary["job"], summary["kind"], summary["exit_code"]) == ("job", "function", 0)
    assert summary["seconds"] > 0


@pytest.mark.parametrize("words", [["--summary-json"], ["check"], ["submit", "--nodes", "2", "--dry-run"]])
def test_a_full_disk_is_reported(run_mprun: RunCommand, mprun: Path, tmp_path: Path, words: list[str]) -> None:
    """What is printed is what was asked for."""
    (tmp_path / "job.py").write_text(SCRIPT)
    (tmp_path / "job.json").write_text(json.dumps({**SPEC, "python": harness.MPRUN_PYTHON}))
    run_mprun(*words, "job.json").check()
    command = [mprun, *words, "job.json"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 125
    assert "could not be written" in done.stderr and "No space left" in done.stderr


@pytest.mark.parametrize(
    "words", [["check"], ["report"], ["submit", "--nodes", "2", "--dry-run"], ["doctor"], ["explain"]], ids=" ".join
)
def test_a_reader_that_has_had_enough(run_mprun: RunCommand, mprun: Path, tmp_path: Path, words: list[str]) -> None:
    """Such as `head -1` and `grep -q`."""
    (tmp_path / "job.py").write_text(SCRIPT)
    (tmp_path / "job.json").write_text(json.dumps({**SPEC, "python": harness.MPRUN_PYTHON}))
    run_mprun("--output", "out", "job.json").check()
    target = {"report": ["out"], "doctor": [], "explain": []}.get(words[0], ["job.json"])
    reader, writer = os.pipe()
    os.close(reader)
    command = [mprun, *words, *target]
    done = subprocess.run(command, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_summary_json_after_results(run_job: RunCommand) -> None:
    """Result lines first, then the summary."""
    run = run_job(SPEC, "--results", "-", "--summary-json", scripts={"job.py": SCRIPT}).check()
    lines = run.stdout.splitlines()
    assert [json.loads(line)["task"] for line in lines[:3]] == [0, 1, 2]
    assert json.loads("\n".join(lines[3:])) == run.summary()


# --- check -------------------------------------------------------------------------------------


def test_check_launches_nothing(run_mprun: RunCommand, tmp_path: Path) -> None:
    """It prints the plan with the reasons."""
    (tmp_path / "job.py").write_text("raise SystemExit('launched')\n")
    (tmp_path / "job.json").write_text(
        json.dumps({**SPEC, "start_method": "spawn", "python": harness.MPRUN_PYTHON}, indent=1)
    )
    run = run_mprun("check", "-n", "3", "job.json").check()
    assert run.stderr == ""
    for pattern in (
        r"^script .*job\.py\b.*job\.json:\d+",
        r"^start_method +spawn +\(job\.json:\d+\)$",
        r"^processes +3 +\(.*--processes 3",
        r"^order +input +\(the default\)$",
        r"^tasks +3$",
    ):
        assert re.search(pattern, run.stdout, re.MULTILINE), (pattern, run)
    assert sorted(os.listdir(tmp_path)) == ["home", "job.json", "job.py", *std_files()]


def std_files() -> list[str]:
    """The files that the harness itself puts next to a run."""
    return ["out.stderr", "out.stdout"]


def test_a_directory_hides_no_subcommand(run_mprun: RunCommand, tmp_path: Path) -> None:
    """Folders often have such names; a file of that name is a program."""
    (tmp_path / "job.json").write_text(json.dumps(SPEC), encoding="utf-8")
    (tmp_path / "job.py").write_text(SCRIPT, encoding="utf-8")
    for word in ("run", "check", "resume", "inspect", "doctor"):
        (tmp_path / word).mkdir()
    run_mprun("check", "job.json").check()
    run_mprun("run", "job.json").check()
    assert "there is no run directory" in run_mprun("resume", "none").check(2).stderr
    (tmp_path / "resume").rmdir()
    (tmp_path / "resume").write_text("#!/bin/sh\n", encoding="utf-8")
    assert "run directory" not in run_mprun("resume", "none").stderr


def test_check_finds_what_is_wrong(run_mprun: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text('{"script": "nosuch.py:run", "inputs": {"range": 1}}')
    assert "no such file" in run_mprun("check", "job.json").check(2).stderr
    (tmp_path / "job.py").write_text(SCRIPT)
    (tmp_path / "job.json").write_text('{"script": "job.py:run", "inputs": {"lines": "nosuch"}}')
    assert "nosuch" in run_mprun("check", "job.json").check(2).stderr
    (tmp_path / "job.json").write_text('{"script": "job.py:run", "inputs": {"range": 0}}')
    assert run_mprun("check", "job.json").check(2).stderr
    assert "check" in run_mprun("check").check(2).stderr


def test_check_of_ranks_and_commands(run_mprun: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("")
    python = ["--python", harness.MPRUN_PYTHON]
    assert re.search(r"ranks +4", run_mprun("check", *python, "-n", "4", "job.py").check().stdout)
    (tmp_path / "job.json").write_text('{"command": ["gzip", "{}"], "inputs": {"range": 7}}')
    shown = run_mprun("check", "job.json").check().stdout
    assert re.search(r"command +.*gzip", shown)
    assert re.search(r"tasks +7", shown)


# --- interpreters ------------------------------------------------------------------------------


# --- options without an effect -----------------------------------------------------------------

FUNCTION = {"script": "job.py:run", "inputs": {"range": 1}, "processes": 1}
COMMAND = {"command": ["true"], "inputs": {"range": 1}, "processes": 1}
RANKS = {"script": "job.py", "processes": 1}
PROGRAM = {"script": "program", "processes": 1}
SCRIPTS = {"job.py": "import os\n\ndef run(number):\n    return number\n"}


def start(run_job: RunCommand, tmp_path: Path, spec: dict[str, Any], *words: str) -> harness.Run:
    (tmp_path / "program").write_text("#!/bin/sh\n")
    (tmp_path / "program").chmod(0o755)
    return run_job(spec, *words, scripts=SCRIPTS)


# Those that determine what is run, and not only how.
REFUSED = ("--python", "--balance", "--set args")

# Option, jobs that it affects, jobs that it does not affect, what is reported for the latter.
KINDS: list[tuple[list[str], list[dict[str, Any]], list[dict[str, Any]], str]] = [
    (["--retries", "0"], [FUNCTION, COMMAND, RANKS, PROGRAM], [], ""),
    (["--on-error", "stop"], [FUNCTION, COMMAND], [RANKS, PROGRAM], "a function or a command"),
    (["--balance", "static"], [FUNCTION, COMMAND], [RANKS, PROGRAM], "a function or a command"),
    (["--chunk-size", "2"], [FUNCTION], [COMMAND, RANKS, PROGRAM], "a function"),
    (["--start-method", "spawn"], [FUNCTION, RANKS], [COMMAND, PROGRAM], "a Python script"),
    (["--join-timeout", "9"], [FUNCTION, RANKS], [COMMAND, PROGRAM], "a Python script"),
    (["--python", harness.MPRUN_PYTHON], [FUNCTION, RANKS], [COMMAND, PROGRAM], "a Python script"),
    (["--set", "limits.tasks_per_worker=2"], [FUNCTION], [COMMAND, RANKS, PROGRAM], "a function"),
    (["--set", 'args=["x"]'], [FUNCTION, RANKS, PROGRAM], [COMMAND], "a script"),
    (["--task-timeout", "60"], [FUNCTION, COMMAND, RANKS, PROGRAM], [], ""),
    (["--order", "completion"], [FUNCTION, COMMAND, RANKS, PROGRAM], [], ""),
    (["--threads-per-worker", "1"], [FUNCTION, COMMAND, RANKS, PROGRAM], [], ""),
    (["--on-hang", "kill"], [FUNCTION, COMMAND, RANKS, PROGRAM], [], ""),
]


@pytest.mark.parametrize(
    ("words", "valid", "invalid", "message"), KINDS, ids=[" ".join(row[0]) for row in KINDS]
)
def test_options_and_kinds_of_jobs(
    run_job: RunCommand,
    tmp_path: Path,
    words: list[str],
    valid: list[dict[str, Any]],
    invalid: list[dict[str, Any]],
    message: str,
) -> None:
    """One without an effect is reported even if it changes nothing: an error if it says what is run, else a warning."""
    for spec in valid:
        assert "is only valid with" not in start(run_job, tmp_path, spec, *words).check().stderr
    for spec in invalid:
        run = start(run_job, tmp_path, spec, *words).check(2 if " ".join(words).startswith(REFUSED) else 0)
        assert re.search(rf"\({re.escape(' '.join(words))}\): /\S+: is only valid with {message};", run.stderr), run
        assert run.run_dir.exists() == (run.returncode == 0)
        shutil.rmtree(run.run_dir, ignore_errors=True)


ELSEWHERE: list[tuple[list[str], str]] = [
    (["--explain", "--", "true"], "--explain is only valid with `mprun run`"),
    (["-d", "events", "--", "true"], "--debug is only valid with `mprun run`"),
    (["--summary-json", "--", "true"], "--summary-json is only valid with `mprun run` or `mprun resume`"),
    (["--view", "workers", "--", "true"], "--view workers is only valid with a job"),
    (["-v", "check", "job.json"], "--verbose is only valid with"),
    (["--summary-json", "submit", "--nodes", "1", "job.json"], "--summary-json is only valid with"),
    (["--shard", "1/2", "submit", "--nodes", "2", "job.json"], "--shard 1/2 is only valid with `mprun run`"),
    (["--output", "o", "resume", "run"], "--output o is only valid with `mprun run`, `mprun check` or `mprun submit`"),
    (["--retry-failed", "job.json"], "--retry-failed is only valid with --resume, `mprun resume` or `mprun submit`"),
    (["--resume", "resume", "run"], "--resume is only valid with `mprun run`"),
    (["--nodes", "2", "job.json"], "--nodes is only valid with `mprun submit`"),
    (["-v", "merge", "run"], "--verbose is only valid with"),
    (["-q", "report", "run"], "--quiet is only valid with"),
    (["-q", "inspect", "1"], "--quiet is only valid with"),
    (["-q", "init", "job.py"], "--quiet is only valid with"),
    (["-q", "doctor"], "--quiet is only valid with"),
    (["-n", "2", "doctor"], "--processes 2 is only valid with"),
    (["--set", "limits.job_seconds=3", "doctor", "job.py"], "--set limits.job_seconds=3 is only valid with a job"),
    (["--retries", "1", "doctor", "--", "true"], "--retries 1 is only valid with a job"),
]


@pytest.mark.parametrize(("words", "message"), ELSEWHERE, ids=[" ".join(row[0]) for row in ELSEWHERE])
def test_options_and_subcommands(run_mprun: RunCommand, tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "job.json").write_text(json.dumps(FUNCTION))
    (tmp_path / "job.py").write_text(SCRIPTS["job.py"])
    (tmp_path / "run").mkdir()
    run = run_mprun(*words).check(2)
    assert run.stderr.startswith(f"mprun: {message}"), run
    assert run.stdout == "" and not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("fields", "words", "message"),
    [
        ({"shard": "1/2"}, [], "job.json: /shard: every node gets a shard of its own"),
        ({"output": {"results": "all.jsonl"}}, [], "job.json: /output/results: several shards cannot write one file"),
        ({}, ["--results", "all.jsonl"], "--results: several shards cannot write one file"),
        ({"inputs": {"lines": "-"}}, [], "job.json:1: /inputs/lines: no node has this standard input"),
        ({}, ["--set", 'inputs.jsonl="-"'], "/inputs/jsonl: no node has this standard input"),
    ],
)
def test_what_no_node_could_use(
    run_mprun: RunCommand, tmp_path: Path, fields: dict[str, Any], words: list[str], message: str
) -> None:
    """`submit` refuses it at once, not hours later on the nodes."""
    (tmp_path / "job.py").write_text(SCRIPT)
    (tmp_path / "job.json").write_text(json.dumps({**SPEC, "python": harness.MPRUN_PYTHON, **fields}))
    run = run_mprun("submit", "--dry-run", "--nodes", "2", "--output", "out", *words, "job.json").check(2)
    assert message in run.stderr and not run.stdout


def test_a_batch_script_has_no_secrets(run_mprun: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(SCRIPT)
    (tmp_path / "job.json").write_text(json.dumps({**SPEC, "python": harness.MPRUN_PYTHON}))
    words = ["submit", "--dry-run", "--nodes", "2", "job.json", "--set"]
    for option in ('env.API_TOKEN="hidden"', 'env={"A": "b", "API_TOKEN": "hidden"}'):
        run = run_mprun(*words, option).check(2)
        assert "--set env.API_TOKEN=***: it is a secret" in run.stderr and "hidden" not in run.stderr + run.stdout
    shown = run_mprun(*words, 'env.API_TOKEN="***"', env={"API_TOKEN": "hidden"}).check().stdout
    assert """--set 'env.API_TOKEN="***"'""" in shown and "hidden" not in shown
    assert 'env.PLAIN="seen"' in run_mprun(*words, 'env.PLAIN="seen"').check().stdout


def test_every_option_has_a_place(run_mprun: RunCommand) -> None:
    """One that no table names would be refused without a reason where it is valid."""
    message = run_mprun("--help-all").check().stdout
    options = dict(re.findall(r"^ +(?:-\w,)?(--[\w-]+)(?: (\S+))?", message, re.MULTILINE))
    assert len(options) > 40 and options["--nodes"] and not options["--resume"]
    values = {"--debug": "events", "--log-level": "info", "--log-format": "json"}
    for name in options.keys() - {"--help", "--help-all", "--version", "--set", "--quiet"}:
        value = [values.get(name, "1")] if options[name] and not options[name].startswith("[") else []
        run = run_mprun(name, *value, "merge", "none").check(2)
        assert re.match(rf"mprun: {name}( 1)? is only valid with [-`a]", run.stderr), run


def test_fields_of_a_spec_without_an_effect(run_job: RunCommand) -> None:
    """With file, line and pointer, as every message about a spec."""
    spec = {**RANKS, "max_failures": 2}
    run = run_job(spec, scripts=SCRIPTS).check()
    message = r"warning: \S*job\.json:\d+: /max_failures: is only valid with a function or a command; .*; it is left out"
    assert re.search(message, run.stderr), run


def test_a_configuration_serves_all_kinds_of_jobs(run_job: RunCommand, tmp_path: Path) -> None:
    """Fields without an effect on this job are left out, without a message."""
    fields = {"on_error": "continue", "chunk_size": 3, "start_method": "spawn", "balance": "dynamic"}
    write_config(tmp_path / "home/.config", {**fields, "limits": {"tasks_per_worker": 1}})
    for spec in (RANKS, PROGRAM, COMMAND):
        run = start(run_job, tmp_path, spec, "--explain").check()
        used = resolved(run)
        assert ("on_error" in used, "balance" in used) == ("command" in spec,) * 2
        assert "start_method" in used if spec is RANKS else "start_method" not in used
        assert "chunk_size" not in used and "tasks_per_worker" not in used["limits"]
        assert "chunk_size" not in run.stderr and "tasks_per_worker" not in run.stderr


def test_a_record_of_an_earlier_mprun_is_resumed(run_job: RunCommand, run_mprun: RunCommand) -> None:
    """Its job.json has fields that were accepted then."""
    run = run_job({**RANKS}, scripts=SCRIPTS).check()
    record = run.run_dir / "job.json"
    fields = {**json.loads(record.read_text()), "max_failures": 1, "on_error": "continue"}
    record.write_text(json.dumps(fields))
    run_mprun("resume", run.run_dir).check()
    warned = run_mprun("resume", "--on-error", "continue", run.run_dir).check()
    assert "/on_error: is only valid with" in warned.stderr


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment made from the Python of the tests."""
    path = tmp_path_factory.mktemp("venv") / "env"
    subprocess.run(
        [harness.MPRUN_PYTHON, "-m", "venv", "--without-pip", str(path)], check=True, timeout=60
    )
    return path


def test_the_python_of_the_spec(run_job: RunCommand, venv: Path, start_method: str) -> None:
    """A virtual environment is one like any other; its packages are found."""
    packages = next(venv.glob("lib/python3*/site-packages"))
    (packages / "only_here.py").write_text("NAME = 'found'\n")
    script = SCRIPT + "\nimport only_here\n"
    spec = {**SPEC, "python": str(venv / "bin/python"), "start_method": start_method}
    run = run_job(spec, scripts={"job.py": script}).check()
    assert {value[2] for value in run.values()} == {str(venv)}


def test_the_active_virtual_environment(
    run_mprun: RunCommand, venv: Path, tmp_path: Path
) -> None:
    """Chosen without a message; --python beats it; python3 of PATH without one."""
    (tmp_path / "job.py").write_text(SCRIPT)
    (tmp_path / "job.json").write_text(json.dumps(SPEC))
    active = {"VIRTUAL_ENV": str(venv)}
    run = run_mprun("job.json", env=active, output=True).check()
    assert {value[2] for value in run.values()} == {str(venv)}
    run = run_mprun("--python", harness.MPRUN_PYTHON, "job.json", env=active, output=True).check()
    assert str(venv) not in {value[2] for value in run.values()}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").symlink_to(venv / "bin/python")
    path = f"{venv}/bin:{os.environ['PATH']}"
    run = run_mprun("job.json", env={"PATH": path}, output=True).check()
    assert {value[2] for value in run.values()} == {str(venv)}
    run = run_mprun("job.json", env={"VIRTUAL_ENV": str(tmp_path / "gone")}, output=True).check(3)
    assert "VIRTUAL_ENV" in run.stderr


# --- the run directory -------------------------------------------------------------------------


def test_what_a_run_leaves(run_job: RunCommand) -> None:
    run = run_job({**SPEC, "processes": 2}, scripts={"job.py": SCRIPT}).check()
    assert sorted(os.listdir(run.run_dir)) == [
        "job.json",
        "joblog.tsv",
        "journal.jsonl",
        "logs",
        "mprun.log",
        "results.jsonl",
        "summary.json",
        "usage.jsonl",
    ]
    for task, result in enumerate(run.results()):
        assert list(result) == ["task", "status", "value", "worker", "attempt", "start", "seconds"]
        assert result["task"] == task
        assert result["start"] > 1.6e9
        assert 0 <= result["seconds"] < 10


def test_a_run_can_be_repeated_from_its_job_json(run_job: RunCommand) -> None:
    """The resolved spec is a spec."""
    first = run_job({**SPEC, "processes": 2, "seed": 3}, scripts={"job.py": SCRIPT}).check()
    again = run_job(first.run_dir / "job.json", "--output", first.run_dir.parent / "again").check()
    assert again.values() == first.values()
    one, two = resolved(first), resolved(again)
    assert one.pop("output") != two.pop("output")
    assert one == two


@pytest.mark.parametrize("option", ["--hang-report", "--metrics", "--junit", "--html", "--trace"])
def test_a_pipe_or_a_device_is_not_replaced(run_mprun: RunCommand, tmp_path: Path, option: str) -> None:
    """By the file that takes the place of an earlier one as a whole; root could replace /dev/null."""
    (tmp_path / "job.py").write_text(SCRIPT)
    (tmp_path / "job.json").write_text(json.dumps({**SPEC, "python": harness.MPRUN_PYTHON}))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    words = ["job.json"]
    if option in ("--html", "--trace"):
        run_mprun("--output", "out", "job.json").check()
        words = ["report", "out"]
    for path in ("pipe", "link", "."):
        run = run_mprun(option, path, *words).check(2)
        why = "is a directory" if path == "." else "is no regular file"
        assert re.search(f"{option}.* {why}", run.stderr), run
    assert (tmp_path / "pipe").is_fifo() and (tmp_path / "link").is_symlink()
    assert not (tmp_path / "runs").exists()
