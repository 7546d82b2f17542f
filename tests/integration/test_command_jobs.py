"""Jobs that execute a program per task: its arguments, what is recorded of it, how it can fail."""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import RunCommand, StartCommand


def show(*words: str) -> list[str]:
    """A command that prints its arguments, one per line."""
    return ["printf", "%s\\n", *words]


def ok(stdout: str, stderr: str = "") -> dict[str, Any]:
    """The value of a command that succeeded."""
    return {"exit_code": 0, "stdout": stdout, "stderr": stderr}


def test_placeholders(run_job: RunCommand) -> None:
    """The input, the task number and the worker slot; wherever they stand, as often as they do."""
    run = run_job(
        {
            "command": show("{}", "{#}", "slot {%}", "a{}b{}c", "{ }", "{x}", "{{}}"),
            "processes": 2,
            "inputs": {"items": ["red", "{#}", 3, [1, "x"], None, {"k": 1.5}]},
        }
    ).check()
    texts = ["red", "{#}", "3", '[1,"x"]', "null", '{"k":1.5}']
    for task, (text, result) in enumerate(zip(texts, run.results(), strict=True)):
        slot = f"slot {result['worker']}"
        lines = [text, str(task), slot, f"a{text}b{text}c", "{ }", "{x}", f"{{{text}}}"]
        assert result["value"] == ok("\n".join(lines) + "\n")


def test_no_shell_in_between(run_job: RunCommand, tmp_path: Path) -> None:
    """An input arrives unchanged, as one argument, whatever it contains."""
    inputs = [
        "$HOME",
        "`touch owned`",
        "; touch owned",
        "two words",
        " lead and trail ",
        "quo\"te'",
        "*",
        "",
        "new\nline",
        "tab\tand \\ backslash",
        "-n",
        "caf\u00e9",
    ]
    run = run_job({"command": show("[{}]"), "inputs": {"items": inputs}}).check()
    assert [value["stdout"] for value in run.values()] == [f"[{text}]\n" for text in inputs]
    assert not (tmp_path / "owned").exists()


def test_without_a_placeholder(run_job: RunCommand) -> None:
    """The command is simply executed once per input."""
    run = run_job({"command": ["echo", "same"], "inputs": {"range": 3}}).check()
    assert run.values() == [ok("same\n")] * 3


def test_output_is_kept_per_task(run_job: RunCommand) -> None:
    """Each result has what its own command wrote; in the logs one command follows the other."""
    script = (
        "for i in 1 2 3 4 5 6 7 8; do printf '%s-' \"$1\"; echo \"$i\"; "
        "echo \"$1 error $i\" >&2; done"
    )
    run = run_job(
        {
            "command": ["sh", "-c", script, "-", "{}"],
            "processes": 4,
            "inputs": {"range": 40},
        }
    ).check()
    logs: dict[int, str] = {}
    results = sorted(run.results(), key=lambda result: result["start"])
    for result in results:
        task = result["task"]
        assert result["value"]["stdout"] == "".join(f"{task}-{i}\n" for i in range(1, 9))
        assert result["value"]["stderr"] == "".join(f"{task} error {i}\n" for i in range(1, 9))
        logs[result["worker"]] = logs.get(result["worker"], "") + result["value"]["stdout"]
    assert len(logs) == 4
    for worker, text in logs.items():
        assert run.log(worker) == text


def test_binary_and_long_output(run_job: RunCommand) -> None:
    """At most 64 KiB of each stream are quoted, all is in the log; bytes stay unchanged."""
    size = 300_000
    script = (
        "import sys; n = int(sys.argv[1]); sys.stdout.buffer.write(bytes([n]) * 2 + b'x' * "
        f"{size}); sys.stderr.buffer.write(b'e' * {size})"
    )
    run = run_job(
        {
            "command": [harness.MPRUN_PYTHON, "-c", script, "{}"],
            "processes": 1,
            "inputs": {"items": [65, 0, 255]},
        }
    ).check()
    for value, start in zip(run.values(), ("AA", "\0\0", "\udcff\udcff"), strict=True):
        assert value["stdout"].startswith(start)
        assert len(value["stdout"]) == len(value["stderr"]) == 65536
    logged = (run.run_dir / "logs/worker-0.out").read_bytes()
    assert len(logged) == 3 * (size + 2)
    assert logged.startswith(b"AAxxx")
    assert b"\xff\xffx" in logged


def test_how_a_command_can_fail(run_job: RunCommand, tmp_path: Path) -> None:
    """Type, message, exit code or signal, and its output; joblog and summary agree."""
    script = (
        "echo out of $1; echo err of $1 >&2; ulimit -c 0; "
        "case $1 in [0-9]*) exit $1;; esac; kill -$1 $$"
    )
    words = ["0", "1", "77", "255", "KILL", "TERM", "SEGV", "HUP"]
    run = run_job(
        {"command": ["sh", "-c", script, "-", "{}"], "processes": 2, "inputs": {"items": words}}
    ).check(1)
    results = run.results()
    assert results[0]["value"] == ok("out of 0\n", "err of 0\n")
    numbers = {"KILL": 9, "TERM": 15, "SEGV": 11, "HUP": 1}
    for word, result in list(zip(words, results, strict=True))[1:]:
        error = result["error"]
        assert (result["status"], result["attempt"]) == ("failed", 1)
        assert (error["stdout"], error["stderr"]) == (f"out of {word}\n", f"err of {word}\n")
        if word in numbers:
            assert (error["type"], error["signal"]) == ("Signal", numbers[word])
            assert re.search(rf"signal {numbers[word]}\b", error["message"])
        else:
            assert (error["type"], error["exit_code"]) == ("ExitCode", int(word))
            assert re.search(rf"exit code {word}\b", error["message"])
    rows = sorted((int(row["Seq"]), row["Exitval"], row["Signal"]) for row in run.joblog())
    assert rows == [
        (seq, "0" if word in numbers else word, str(numbers.get(word, 0)))
        for seq, word in enumerate(words, 1)
    ]
    assert run.summary()["command_exits"] == {
        "0": 1,
        "1": 1,
        "77": 1,
        "255": 1,
        **{f"signal {number}": 1 for number in numbers.values()},
    }


def test_programs_that_cannot_be_executed(run_job: RunCommand, tmp_path: Path) -> None:
    """Each such task reports it; the others run."""
    (tmp_path / "plain").write_text("no program")
    (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
    (tmp_path / "broken").chmod(0o755)
    programs = ["./true", "no-such-program", "./plain", "/", "./broken", "/no/such/file"]
    (tmp_path / "true").symlink_to("/bin/true")
    run = run_job({"command": ["{}"], "inputs": {"items": programs}}).check(1)
    results = run.results()
    assert results[0]["status"] == "ok"
    for program, result in list(zip(programs, results, strict=True))[1:]:
        assert (result["status"], result["error"]["type"]) == ("failed", "SpawnFailed"), result
        assert program.strip("./") in result["error"]["message"]
    assert "Permission denied" in results[2]["error"]["message"]
    assert "No such file" in results[1]["error"]["message"]


def test_failures_whose_words_are_not_utf8(run_job: RunCommand, tmp_path: Path) -> None:
    """They are named as any other, in the terminal and in JUnit XML."""
    say = "printf 'caf\\351 fehlt\\n' >&2; exit 3"
    run = run_job({"command": ["sh", "-c", say], "inputs": {"range": 1}}, "--junit", "all.xml").check(1)
    assert "1 x ExitCode: the command ended with exit code 3 (task 0" in run.stderr
    assert "udce9" not in run.stderr
    xml = (tmp_path / "all.xml").read_text()
    assert '<failure type="ExitCode" message="the command ended with exit code 3">' in xml


def test_too_long_arguments(run_job: RunCommand) -> None:
    """An input that exec does not take fails its own task only."""
    items = ["short", "x" * 200_000, "last"]
    run = run_job({"command": ["echo", "{}"], "inputs": {"items": items}}).check(1)
    first, long, last = run.results()
    assert (first["status"], last["status"]) == ("ok", "ok")
    assert long["error"]["type"] == "SpawnFailed"
    assert "Argument list too long" in long["error"]["message"]


def test_inputs_with_a_byte_of_zero(run_job: RunCommand, tmp_path: Path) -> None:
    """No command runs with what stands before it."""
    (tmp_path / "names.txt").write_bytes(b"first\nhalf\0name\nlast\n")
    run = run_job({"command": ["echo", "{}"], "inputs": {"lines": "names.txt"}}).check(1)
    first, half, last = run.results()
    assert (first["status"], last["status"]) == ("ok", "ok")
    assert half["error"]["type"] == "SpawnFailed"
    assert half["error"]["message"] == "cannot execute echo: the input has a byte of 0, which no argument may have"


def test_surroundings(run_job: RunCommand, tmp_path: Path) -> None:
    """Variables, directory, no input, nothing blocked or ignored, three descriptors."""
    (tmp_path / "work").mkdir()
    script = (
        'echo "$MPRUN_TASK $MPRUN_ATTEMPT $MPRUN_WORKER $MPRUN_RUN_DIR"; echo "$OWN"; pwd; wc -c; '
        'grep -E "Sig(Blk|Ign)" /proc/self/status; '
        "for n in 0 1 2 3 4 5 6 7 8 9 10 11 12; do test -e /proc/$$/fd/$n && echo $n; done; true"
    )
    run = run_job(
        {
            "command": ["sh", "-c", script],
            "processes": 2,
            "env": {"OWN": "of the spec"},
            "working_directory": "work",
            "inputs": {"range": 4},
        },
        stdin="not for commands",
    ).check()
    for task, result in enumerate(run.results()):
        lines = result["value"]["stdout"].splitlines()
        assert lines[0] == f"{task} 1 {result['worker']} {run.run_dir}"
        assert lines[1:4] == ["of the spec", str(tmp_path / "work"), "0"]
        assert [line.split()[1] for line in lines[4:6]] == ["0" * 16] * 2
        assert lines[6:] == ["0", "1", "2"]


def test_retries_of_commands(run_job: RunCommand, tmp_path: Path) -> None:
    script = 'echo "attempt $MPRUN_ATTEMPT"; test "$MPRUN_ATTEMPT" -ge "$1"'
    run = run_job(
        {
            "command": ["sh", "-c", script, "-", "{}"],
            "processes": 2,
            "retries": 2,
            "inputs": {"items": [1, 2, 3, 4]},
        }
    ).check(1)
    results = run.results()
    assert [result["attempt"] for result in results] == [1, 2, 3, 3]
    assert [result["status"] for result in results] == ["ok", "ok", "ok", "failed"]
    assert results[2]["value"] == ok("attempt 3\n")
    assert results[3]["error"]["stdout"] == "attempt 3\n"


def test_time_limit_of_commands(run_job: RunCommand, tmp_path: Path) -> None:
    """TERM for the whole group, grace, KILL: children of the command end too."""
    script = (
        "trap '' TERM; echo begun; if test $1 = 1; then sleep 600 & echo $! >>sleepers; wait; "
        "while :; do sleep 0.1; done; fi"
    )
    began = time.monotonic()
    run = run_job(
        {
            "command": ["sh", "-c", script, "-", "{}"],
            "processes": 2,
            "retries": {"on_death": 0},
            "limits": {"task_seconds": 0.5, "grace_seconds": 0.3},
            "inputs": {"range": 3},
        },
        timeout=20,
    ).check(1)
    assert time.monotonic() - began < 10
    results = run.results()
    assert [result["status"] for result in results] == ["ok", "failed", "ok"]
    assert results[1]["error"]["type"] == "Timeout"
    (sleeper,) = map(int, harness.marks(tmp_path / "sleepers"))
    assert not harness.is_alive(sleeper)


def test_what_a_command_leaves_behind(run_job: RunCommand, tmp_path: Path) -> None:
    """A background child neither delays its task nor outlives the job."""
    script = "sleep 600 & echo $! >>left; setsid sleep 600 & echo $! >>left; echo done"
    run = run_job(
        {"command": ["sh", "-c", script], "processes": 1, "inputs": {"range": 3}}, timeout=20
    ).check()
    assert run.values() == [ok("done\n")] * 3
    left = [int(pid) for pid in harness.marks(tmp_path / "left")]
    assert len(left) == 6
    assert not any(map(harness.is_alive, left))


def test_all_slots_are_used(run_job: RunCommand) -> None:
    """As many commands as processes run at the same time, no more."""
    script = (
        "echo $$ >>here; until test $(wc -l <here) -ge 6; do sleep 0.01; done; echo {%}"
    )
    spec = {"command": ["sh", "-c", script], "processes": 6, "inputs": {"range": 12}}
    run = run_job(spec).check()
    slots = Counter(int(value["stdout"]) for value in run.values())
    assert set(slots) == set(range(6))
    assert {result["worker"] for result in run.results()} == set(range(6))


def test_on_error_stop_with_commands(run_job: RunCommand) -> None:
    run = run_job(
        {
            "command": ["sh", "-c", "test {} -ne 4 && sleep 0.01"],
            "processes": 2,
            "on_error": "stop",
            "inputs": {"range": 1000},
        }
    ).check(1)
    counts = run.summary()["counts"]
    assert counts["failed"] == 1
    assert counts["ok"] < 500


def test_lines_of_standard_input(start_job: StartCommand) -> None:
    """As with xargs: commands run while the lines still come."""
    read_end, write_end = os.pipe()
    running = start_job(
        {"command": ["echo", "got {}"], "processes": 2, "inputs": {"lines": "-"}},
        "--results",
        "-",
        stdin=read_end,
    )
    with open(write_end, "w", encoding="utf-8") as pipe:
        pipe.write("one\n")
        pipe.flush()
        harness.wait_until(lambda: running.stdout.count("\n") == 1, what="the first result")
        pipe.write("two\nthree\n")
    run = running.wait().check()
    assert [value["stdout"] for value in run.values()] == ["got one\n", "got two\n", "got three\n"]
    assert [json.loads(line) for line in run.stdout.splitlines()] == run.results()


def test_two_thousand_commands(run_job: RunCommand) -> None:
    run = run_job(
        {"command": ["true"], "processes": 4, "inputs": {"range": 2000}}, timeout=60
    ).check()
    assert run.values() == [ok("")] * 2000
    assert run.summary()["command_exits"] == {"0": 2000}
    assert len(run.joblog()) == 2000


def test_joblog_quotes_the_command(run_job: RunCommand) -> None:
    """Quoted for a shell: GNU parallel can read and repeat it."""
    run = run_job(
        {"command": ["echo", "-n", "{}"], "processes": 1, "inputs": {"items": ["a b", "$x", "ok"]}}
    ).check()
    rows = sorted(run.joblog(), key=lambda row: int(row["Seq"]))
    assert list(rows[0]) == [
        "Seq", "Host", "Starttime", "JobRuntime", "Send", "Receive", "Exitval", "Signal", "Command"
    ]  # fmt: skip
    assert [row["Command"] for row in rows] == ["echo -n 'a b'", "echo -n '$x'", "echo -n ok"]
    assert all(float(row["Starttime"]) > 1.6e9 for row in rows)
