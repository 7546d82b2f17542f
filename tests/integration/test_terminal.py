"""Output for users: on a terminal (a real pty) and in a pipe."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import Run, RunCommand
from terminal import COLUMNS, Terminal

WAITS = """
from events import mark, wait_for


def run(number):
    if number >= 3:
        mark("waits")
        wait_for("go", seconds=60)
    return number


def fail(number):
    if number == 1:
        raise ValueError("\\x1b[2Jout of luck\\r")
    return number


def catch(number):
    mark("waits")
    try:
        wait_for("go", seconds=60)
    except KeyboardInterrupt:
        mark("interrupted")
        raise
    return number
"""


StartTerminal = Callable[..., Terminal]


@pytest.fixture
def terminal(mprun: Path, tmp_path: Path) -> Iterator[StartTerminal]:
    """terminal(*arguments, env={}, columns=100) -> a running mprun on its own terminal."""
    opened: list[Terminal] = []
    (tmp_path / "job.py").write_text(WAITS)
    (tmp_path / "events.py").write_text(harness.EVENTS)

    def start(
        *arguments: str, env: Mapping[str, str] | None = None, columns: int = COLUMNS
    ) -> Terminal:
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "TERM": "xterm",
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            **(env or {}),
        }
        opened.append(Terminal([str(mprun.resolve()), *arguments], tmp_path, variables, columns))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def write_job(folder: Path, **fields: Any) -> str:
    """job.json, a job of 10 tasks of which those from 3 on wait for the file `go`."""
    spec: dict[str, Any] = {
        "script": "job.py:run",
        "python": harness.MPRUN_PYTHON,
        "processes": 2,
        "chunk_size": 1,
        "inputs": {"range": 10},
        "output": {"dir": "out"},
        **fields,
    }
    (folder / "job.json").write_text(json.dumps(spec))
    return "job.json"


def results(folder: Path) -> list[dict[str, Any]]:
    """Those of the run."""
    return [json.loads(line) for line in (folder / "out/results.jsonl").read_text().splitlines()]


# --- progress ----------------------------------------------------------------------------------


def test_live_line(terminal: StartTerminal, tmp_path: Path) -> None:
    """One line that is redrawn again and again: done, percentage, busy workers; gone at the end."""
    screen = terminal(write_job(tmp_path))
    screen.expect(r"\r[^\n]*\b3/10\b[^\n]*30%[^\n]*2/2 busy")
    assert "\n" not in screen.output, "progress moved down the screen"
    (tmp_path / "go").write_text("\n")
    assert screen.wait() == 0
    shown = [line for line in screen.screen() if line]
    assert re.match(r"job: 10 ok in ", shown[0]), shown
    assert shown[1] == "results: out/results.jsonl"
    assert len(shown) == 2


def test_live_line_shows_failures_and_rate(terminal: StartTerminal, tmp_path: Path) -> None:
    """Messages stand above it; output of a task cannot move the cursor."""
    (tmp_path / "slow.py").write_text(
        "from events import mark, wait_for\n\n\ndef run(number):\n"
        "    if number == 2:\n        raise ValueError('\\x1b[2Jout of \\x1b[5Aluck\\r')\n"
        "    if number > 5:\n        wait_for('go')\n"
    )
    screen = terminal(write_job(tmp_path, script="slow.py:run"))
    screen.expect(r"\r[^\n]*1 failed")
    screen.expect(r"\r[^\n]*\d/s")
    (tmp_path / "go").write_text("\n")
    assert screen.wait() == 1
    assert "\x1b[2J" not in screen.output
    assert "\x1b[5A" not in screen.output
    text = "\n".join(screen.screen())
    assert re.search(r"^task 2 failed: ValueError: .*out of .*luck", text, re.MULTILINE)
    assert re.search(r"^job: 9 ok, 1 failed in ", text, re.MULTILINE)
    assert "exit code 1" in text


def test_a_wait_for_another_shard_is_shown(terminal: StartTerminal, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(
        "import os\nfrom events import wait_for\n\n\ndef run(number):\n"
        "    if os.environ['MPRUN_RUN_DIR'].endswith('1'):\n        wait_for('go')\n    return number\n"
    )
    words = ("--balance", "dynamic", "--output", "all", write_job(tmp_path, processes=1))
    slow = terminal("--shard", "1/2", *words)
    harness.wait_until((tmp_path / "all/blocks/1/held.0.1").exists, 30, "a block to be claimed")
    quick = terminal("--shard", "2/2", *words)
    quick.expect("waiting for blocks of shard 1")
    (tmp_path / "go").write_text("\n")
    assert slow.wait() == quick.wait() == 0


def test_unknown_number_of_tasks(terminal: StartTerminal, tmp_path: Path) -> None:
    """A pipe of inputs on standard input, progress on the terminal."""
    os.mkfifo(tmp_path / "inputs")
    spec = write_job(tmp_path, inputs={"lines": "inputs"}, script="job.py:give")
    (tmp_path / "job.py").write_text("def give(line):\n    return line\n")
    screen = terminal(spec)
    with open(tmp_path / "inputs", "w", encoding="utf-8") as pipe:
        pipe.write("one\ntwo\n")
        pipe.flush()
        screen.expect(r"\r[^\n]*2 done")
    assert screen.wait() == 0


@pytest.mark.parametrize("columns", [20, 40, 132])
def test_width_of_the_terminal(terminal: StartTerminal, tmp_path: Path, columns: int) -> None:
    """The live line never wraps."""
    screen = terminal(write_job(tmp_path), columns=columns)
    screen.expect(r"3/10")
    drawn = [
        re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text) for text in re.split(r"[\r\n]", screen.output)
    ]
    assert max(map(len, drawn)) < columns
    (tmp_path / "go").write_text("\n")
    assert screen.wait() == 0


def test_no_color(terminal: StartTerminal, tmp_path: Path) -> None:
    """NO_COLOR: no colours, but still a live line."""
    colours = r"\x1b\[[0-9;]*m"
    (tmp_path / "go").write_text("\n")
    screen = terminal(write_job(tmp_path, script="job.py:fail"))
    assert screen.wait() == 1
    assert re.search(colours, screen.output)
    screen = terminal(
        write_job(tmp_path, script="job.py:fail", output={"dir": "out2"}), env={"NO_COLOR": "1"}
    )
    assert screen.wait() == 1
    assert not re.search(colours, screen.output)
    assert "\r" in screen.output.replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("words", "variables"),
    [(["--progress", "never"], {}), (["-q"], {}), ([], {"TERM": "dumb"}), ([], {"TERM": ""})],
    ids=str,
)
def test_no_live_line(
    terminal: StartTerminal, tmp_path: Path, words: list[str], variables: dict[str, str]
) -> None:
    screen = terminal(*words, write_job(tmp_path), env=variables)
    harness.wait_until(lambda: harness.marks(tmp_path / "waits"), what="the job")
    (tmp_path / "go").write_text("\n")
    assert screen.wait() == 0
    text = screen.output.replace("\r\n", "\n")
    assert "\r" not in text
    assert "\x1b" not in text
    if words == ["-q"]:
        assert text == ""


def test_results_on_the_terminal(terminal: StartTerminal, tmp_path: Path) -> None:
    """`--results -` and a live line would write over each other: there is none."""
    (tmp_path / "go").write_text("\n")
    screen = terminal("--results", "-", write_job(tmp_path))
    assert screen.wait() == 0
    lines = screen.output.replace("\r\n", "\n").split("\n")
    assert [json.loads(line)["task"] for line in lines if line.startswith("{")] == list(range(10))
    assert "\r" not in "".join(lines)


# --- keys --------------------------------------------------------------------------------------


def test_ctrl_c_once(terminal: StartTerminal, tmp_path: Path) -> None:
    """Running tasks are not affected and finish."""
    screen = terminal(write_job(tmp_path, script="job.py:catch"))
    harness.wait_until(lambda: len(harness.marks(tmp_path / "waits")) == 2, what="two tasks")
    screen.type("\x03")
    screen.expect("stopping")
    (tmp_path / "go").write_text("\n")
    assert screen.wait() == 130
    assert [result["status"] for result in results(tmp_path)] == ["ok", "ok"]
    assert harness.marks(tmp_path / "interrupted") == []
    text = "\n".join(screen.screen())
    assert "2 ok, 8 not run" in text
    assert "exit code 130" in text


def test_ctrl_c_twice(terminal: StartTerminal, tmp_path: Path) -> None:
    screen = terminal(write_job(tmp_path, limits={"grace_seconds": 60}))
    harness.wait_until(lambda: len(harness.marks(tmp_path / "waits")) == 2, what="two tasks")
    screen.type("\x03")
    screen.expect("stopping")
    typed = time.monotonic()
    screen.type("\x03")
    assert screen.wait() == 130
    assert time.monotonic() - typed < 3
    statuses = [result["status"] for result in results(tmp_path)]
    assert statuses == ["ok"] * 3 + ["cancelled"] * 2


def test_ctrl_z(terminal: StartTerminal, tmp_path: Path) -> None:
    """The shell gets its prompt: mprun stops with its whole job, and goes on when it is continued."""
    screen = terminal(write_job(tmp_path))
    harness.wait_until(lambda: len(harness.marks(tmp_path / "waits")) == 2, what="two tasks")
    family = [screen.pid, *(process.pid for process in harness.descendants(screen.pid))]
    screen.type("\x1a")

    def stopped() -> bool:
        screen.read()
        processes = harness.list_processes()
        return all(processes[pid].state == "T" for pid in family)

    harness.wait_until(stopped, what="all to stop")
    os.kill(screen.pid, signal.SIGCONT)
    (tmp_path / "go").write_text("\n")
    assert screen.wait() == 0
    assert len(results(tmp_path)) == 10


def test_hangup(terminal: StartTerminal, tmp_path: Path) -> None:
    """The terminal is closed: the job ends, no process is left, the results so far are there."""
    screen = terminal(write_job(tmp_path, limits={"grace_seconds": 0.3}))
    harness.wait_until(lambda: len(harness.marks(tmp_path / "waits")) == 2, what="two tasks")
    family = [process.pid for process in harness.descendants(screen.pid)]
    os.close(screen.fd)
    screen.fd = os.open(os.devnull, os.O_RDWR)
    harness.wait_until(lambda: not any(map(harness.is_alive, family)), what="the job to end")
    _, status = os.waitpid(screen.pid, 0)
    screen.code = os.waitstatus_to_exitcode(status)
    assert screen.code == 128 + signal.SIGHUP
    assert [result["status"] for result in results(tmp_path)[:3]] == ["ok"] * 3


def test_a_program_owns_the_terminal(terminal: StartTerminal) -> None:
    """`mprun -- COMMAND`: it reads keys, sees a terminal, and mprun adds nothing."""
    script = "import os; print(*map(os.isatty, range(3))); print(input('name? ') * 2)"
    screen = terminal("--", harness.MPRUN_PYTHON, "-c", script)
    screen.expect(r"name\? ")
    screen.type("ab\n")
    assert screen.wait() == 0
    assert screen.screen()[:3] == ["True True True", "name? ab", "abab"]


def test_ctrl_c_reaches_a_program_once(terminal: StartTerminal, tmp_path: Path) -> None:
    script = (
        "trap 'echo got >>got; n=1' INT; echo >>ready; "
        "while test -z \"$n\"; do sleep 0.02; done; sleep 0.2; exit 5"
    )
    screen = terminal("--", "sh", "-c", script)
    harness.wait_until(lambda: harness.marks(tmp_path / "ready"), what="the program")
    screen.type("\x03")
    assert screen.wait() == 5
    assert harness.marks(tmp_path / "got") == ["got"]


def test_ctrl_c_ends_a_program(terminal: StartTerminal, tmp_path: Path) -> None:
    screen = terminal("--", "sh", "-c", "echo >>ready; exec sleep 60")
    harness.wait_until(lambda: harness.marks(tmp_path / "ready"), what="the program")
    screen.type("\x03")
    assert screen.wait() == 130


def test_standard_input_on_a_terminal(terminal: StartTerminal, tmp_path: Path) -> None:
    """mprun never waits silently for typed inputs."""
    screen = terminal(write_job(tmp_path, inputs={"lines": "-"}))
    assert screen.wait() == 2
    assert "standard input is a terminal" in screen.output


# --- pipes -------------------------------------------------------------------------------------


def plain_job() -> dict[str, Any]:
    """A job of which one task fails with control characters in its message."""
    return {"script": "job.py:fail", "processes": 2, "inputs": {"range": 6}}


def test_plain_output(run_job: RunCommand) -> None:
    """Whole lines and no control characters, whatever a task prints."""
    files = {"job.py": WAITS, "events.py": harness.EVENTS}
    run = run_job(plain_job(), "-v", "--explain", scripts=files, env={"TERM": "xterm"}).check(1)
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f\x80-\x9f]", run.stderr) is None
    assert run.stderr.endswith("\n")
    assert run.stdout == ""
    lines = run.stderr.splitlines()
    assert "job: started, 6 tasks, 2 processes" in lines
    assert any(line.startswith("task 1 failed: ValueError: ") for line in lines)
    assert any(line.startswith("job: 5 ok, 1 failed in ") for line in lines)
    assert any(re.match(r"  1 x ValueError: .*task 1, .*job\.py", line) for line in lines)
    assert any(line.startswith("exit code 1: ") for line in lines)


def test_quiet(run_job: RunCommand) -> None:
    """A job that went well prints nothing; a failure is still reported."""
    files = {"job.py": WAITS, "events.py": harness.EVENTS, "go": "\n"}
    run = run_job({**plain_job(), "script": "job.py:run"}, "-q", scripts=files).check()
    assert (run.stdout, run.stderr) == ("", "")
    run = run_job(plain_job(), "-q", scripts=files).check(1)
    assert "1 failed" in run.stderr
    assert "started" not in run.stderr


def test_progress_always(run_job: RunCommand) -> None:
    """Even if everything else is silent."""
    files = {"job.py": WAITS, "events.py": harness.EVENTS, "go": "\n"}
    spec = {**plain_job(), "script": "job.py:run"}
    run = run_job(spec, "-q", "--progress", "always", scripts=files).check()
    assert run.stderr == "job: started, 6 tasks, 2 processes\n"
    assert "started" not in run_job(spec, "--progress", "never", scripts=files).check().stderr


def test_explain(run_job: RunCommand) -> None:
    """Each decision with its reason: where it was set, or why it was chosen."""
    files = {"job.py": WAITS, "events.py": harness.EVENTS, "go": "\n"}
    spec = {**plain_job(), "script": "job.py:run", "start_method": "spawn"}
    run = run_job(spec, "--explain", "--chunk-size", "3", scripts=files).check()
    explained = [line for line in run.stderr.splitlines() if line.startswith("explain: ")]
    assert any(re.search(r"start_method\b.*spawn.*job\.json:\d+", line) for line in explained), run
    assert any(re.search(r"chunk_size\b.*3.*--chunk-size", line) for line in explained), run
    assert any(re.search(r"order\b.*input.*default", line) for line in explained), run
    assert any(re.search(r"python\b.*" + re.escape(harness.MPRUN_PYTHON), line) for line in explained)
    quiet = run_job(spec, scripts=files).check()
    assert "explain" not in quiet.stderr


def check_starts_and_ends(run: Run, who: str) -> None:
    started = re.findall(rf"^{who} started \(pid (\d+)\)$", run.stderr, re.MULTILINE)
    ended = re.findall(rf"^{who} \(pid (\d+)\) ended: exit code 0$", run.stderr, re.MULTILINE)
    assert len(started) == 1 and started == ended, run


def test_verbose(run_job: RunCommand, start_method: str) -> None:
    """Every start and end of a worker, and of the host that forks them."""
    files = {"job.py": WAITS, "events.py": harness.EVENTS, "go": "\n"}
    spec = {**plain_job(), "script": "job.py:run", "start_method": start_method}
    run = run_job(spec, "-v", scripts=files).check()
    for who in ["worker 0", "worker 1"] + ["host"] * (start_method != "spawn"):
        check_starts_and_ends(run, who)
    assert "-1" not in run.stderr


def test_verbose_names_ranks_and_commands(run_job: RunCommand) -> None:
    spec = {"script": "job.py", "processes": 2, "start_method": "spawn"}
    run = run_job(spec, "-v", scripts={"job.py": "pass\n"}).check()
    for who in ("rank 0", "rank 1"):
        check_starts_and_ends(run, who)
    run = run_job({"command": ["true"], "inputs": {"range": 1}}, "-v").check()
    check_starts_and_ends(run, "command 0")


def test_many_failures_are_summed_up(run_job: RunCommand) -> None:
    """Not a thousand lines: the first ones, then counts by type."""
    script = "def run(number):\n    return [][number] if number % 2 else 1 / 0\n"
    run = run_job(
        {"script": "job.py:run", "processes": 2, "inputs": {"range": 1000}},
        scripts={"job.py": script},
    ).check(1)
    assert len(run.stderr.splitlines()) < 30
    assert re.search(r"500 x IndexError: ", run.stderr)
    assert re.search(r"500 x ZeroDivisionError: ", run.stderr)


def test_standard_error_that_goes_away(run_job: RunCommand) -> None:
    """No process reads it any more: the job goes on."""
    files = {"job.py": WAITS, "events.py": harness.EVENTS, "go": "\n"}
    read_end, write_end = os.pipe()
    os.close(read_end)

    def redirect() -> None:
        os.dup2(write_end, 2)

    spec = {**plain_job(), "script": "job.py:run"}
    try:
        run = run_job(spec, "-v", scripts=files, preexec_fn=redirect, pass_fds=(write_end,)).check()
    finally:
        os.close(write_end)
    assert run.values() == list(range(6))
