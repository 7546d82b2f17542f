"""The harness itself: a check that sees nothing would accept everything."""

from __future__ import annotations

import mmap
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import harness


@pytest.fixture
def fake(tmp_path: Path) -> harness.Runner:
    """A Runner whose mprun is a shell script: it runs its last argument."""
    program = tmp_path / "fake-mprun"
    program.write_text('#!/bin/sh\nfor last; do :; done\neval "$last"\n')
    program.chmod(0o755)
    return harness.Runner(program, tmp_path)


def test_output_and_exit_code_are_kept(fake: harness.Runner) -> None:
    run = fake.start("cat; echo oops >&2; exit 7", stdin="to and fro\n").wait(10)
    assert (run.returncode, run.stdout, run.stderr) == (7, "to and fro\n", "oops\n")
    with pytest.raises(AssertionError, match="oops"):
        run.check()


def test_every_run_gets_its_own_run_directory(fake: harness.Runner, tmp_path: Path) -> None:
    first, second = fake.start("true"), fake.start("true")
    third = fake.start("--output=here", "true")
    assert [running.wait(10).run_dir for running in (first, second, third)] == [
        tmp_path / "out",
        tmp_path / "out-2",
        tmp_path / "here",
    ]


def test_foreign_variables_do_not_reach_mprun(
    fake: harness.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("MPRUN_ANYTHING", "x")
    script = 'echo "$OMP_NUM_THREADS$MPRUN_ANYTHING|$MPRUN_MINE|$HOME"'
    assert (
        fake.start(script, env={"MPRUN_MINE": "y"}).wait(10).stdout == f"|y|{fake.folder}/home\n"
    )


def test_jobs_are_written_and_scripts_get_the_tests_python(fake: harness.Runner) -> None:
    spec = {"script": "task.py", "function": "task"}
    run = fake.start_job(spec, scripts={"task.py": "def task(): pass\n"}, output=False).wait(10)
    assert run.returncode != 0  # the shell cannot execute job.json
    assert (fake.folder / "job.json").read_text().startswith('{\n  "version": 1')
    assert (fake.folder / "task.py").is_file()
    assert fake.started[0].argv[1:3] == ["--python", harness.MPRUN_PYTHON]


def test_a_process_that_outlives_mprun_is_seen(fake: harness.Runner) -> None:
    run = fake.start("setsid sleep 1000 & exit 0").wait(10)
    assert len(run.survivors) == 1 and "sleep 1000" in run.survivors[0]
    left = harness.wait_until(  # until setsid has become sleep
        lambda: [p for p in harness.living_descendants() if p.name == "sleep"]
    )
    assert len(left) == len(harness.living_descendants()) == 1
    assert left[0].ppid == os.getpid()
    harness.kill_all(left)
    harness.wait_until(lambda: not harness.is_alive(left[0].pid))


def test_a_sibling_is_no_survivor(fake: harness.Runner, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    early = fake.start(f"read line < {gate}")
    assert fake.start("true").wait(10).survivors == []
    done = fake.start("true")
    late = fake.start(f"read line < {gate}")
    assert done.wait(10).survivors == []
    early.stop()
    late.stop()


def test_a_run_that_takes_too_long_is_killed_whole(fake: harness.Runner) -> None:
    with pytest.raises(
        AssertionError, match="(?s)had not ended after [0-9.]+ s.*sleep 1000.*so far so good"
    ):
        fake.start("echo so far so good; sleep 1000; true").wait(0.5)
    assert harness.wait_until(lambda: not harness.living_descendants())


def test_signals_reach_mprun(fake: harness.Runner) -> None:
    running = fake.start("exec sleep 1000")
    harness.wait_until(lambda: harness.list_processes()[running.pid].name == "sleep")
    running.send_signal(signal.SIGTERM)
    assert running.wait(10).returncode == -signal.SIGTERM


def test_unused_shared_memory_is_distinguished_from_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "SHARED_MEMORY", tmp_path)
    with open(tmp_path / "used", "wb"):
        assert harness.unused_shared_memory({"used"}) == set()
    assert harness.unused_shared_memory({"used", "never-there"}) == {"used"}


def test_a_new_semaphore_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As sem_open() makes one: it is mapped by the name that it had before it was complete."""
    monkeypatch.setattr(harness, "SHARED_MEMORY", tmp_path)
    (tmp_path / "incomplete").write_bytes(b"semaphore")
    with open(tmp_path / "incomplete", "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    (tmp_path / "named").hardlink_to(tmp_path / "incomplete")
    (tmp_path / "incomplete").unlink()
    assert harness.unused_shared_memory({"named"}) == set()
    mapped.close()
    assert harness.unused_shared_memory({"named"}) == {"named"}


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (
            "subprocess.Popen(['sh', '-c', 'sleep 1000 & exit 0']).wait()",
            "process left: *sleep 1000",
        ),
        ("os.open('/dev/null', os.O_RDONLY)", "file descriptor left: * -> /dev/null"),
        ("open('shared/leak', 'w').close()", "shared memory left: leak"),
    ],
)
def test_every_test_is_checked_for_leaks(tmp_path: Path, body: str, complaint: str) -> None:
    (tmp_path / "test_leak.py").write_text(
        f"import os, subprocess\n\ndef test_leak():\n    {body}\n"
    )
    shutil.copy(harness.ROOT / "tests/conftest.py", tmp_path)
    (tmp_path / "shared").mkdir()  # the real shared memory belongs to concurrent tests
    done = subprocess.run(
        [harness.MPRUN_PYTHON, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(harness.ROOT / "tests"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HARNESS_SHARED_MEMORY": str(tmp_path / "shared"),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    pytest.LineMatcher(done.stdout.splitlines()).fnmatch_lines(
        [f"*{complaint}*", "*1 passed, 1 error*"]
    )


def collected(*words: str) -> str:
    """What pytest prints about the tests that it finds."""
    argv = [harness.MPRUN_PYTHON, "-m", "pytest", "--collect-only", "-q", *words]
    run = subprocess.run(argv, cwd=harness.ROOT / "tests", capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


def test_the_nightly_list_names_tests() -> None:
    """All that it names exist, and are left out without --nightly."""
    lines = (harness.ROOT / "tests/nightly.txt").read_text(encoding="utf-8").splitlines()
    named = [line.split("  ")[0] for line in lines if line and not line.startswith("#")]
    there = collected("--nightly", *named)
    assert "not found" not in there
    assert [name for name in named if name not in there] == []
    assert re.search(r"no tests collected \(\d+ deselected\)", collected(*named))
