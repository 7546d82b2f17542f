"""`mprun -- COMMAND` and `mprun SCRIPT.py[:FUNCTION] ARGS`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import harness
from harness import RunCommand, Running, StartCommand
from terminal import COLUMNS, Terminal

# --- mprun -- COMMAND --------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 2, 3, 42, 123, 128, 255])
def test_exit_code_is_passed_through(run_mprun: RunCommand, code: int) -> None:
    run = run_mprun("--", "sh", "-c", f"exit {code}")
    assert (run.returncode, run.stdout, run.stderr) == (code, "", "")


@pytest.mark.parametrize("number", [1, 2, 6, 9, 11, 15, 34, 64])
def test_death_by_signal(run_mprun: RunCommand, number: int) -> None:
    """128 + N, as a shell gives it."""
    assert run_mprun("--", "sh", "-c", f"ulimit -c 0; kill -{number} $$").returncode == 128 + number


def test_programs_that_cannot_be_run(run_mprun: RunCommand, tmp_path: Path) -> None:
    """126 and 127, with a message."""
    (tmp_path / "plain").write_text("no program")
    (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
    (tmp_path / "broken").chmod(0o755)
    for program, code in (
        ("no-such-program", 127),
        ("/no/such/file", 127),
        ("./plain", 126),
        ("/", 126),
        ("./broken", 127),  # the kernel returns ENOENT for it, too
        ("", 127),
    ):
        run = run_mprun("--", program)
        assert run.returncode == code, (program, run)
        assert "mprun: " in run.stderr
        assert program in run.stderr
    run_mprun("--").check(2)


def test_standard_streams_are_the_programs(run_mprun: RunCommand, tmp_path: Path) -> None:
    """Nothing is added, nothing is left: no run directory."""
    run = run_mprun("--", "sh", "-c", "cat; echo err >&2; ls /proc/$$/fd", stdin=b"in\xff\n")
    assert run.stdout.startswith("in\ufffd\n")
    assert run.stdout.split()[1:4] == ["0", "1", "2"]
    assert run.stderr == "err\n"
    assert not (tmp_path / "runs").exists()


def test_arguments_are_the_programs(run_mprun: RunCommand) -> None:
    words = ["-n", "--help", "a b", "", "$HOME", "--", "-q", "{}", "*"]
    run = run_mprun("--", "printf", "[%s]\\n", *words).check()
    assert run.stdout.splitlines() == [f"[{word}]" for word in words]


def test_environment_and_directory_are_the_programs(
    run_mprun: RunCommand, tmp_path: Path
) -> None:
    """As if mprun were not there."""
    script = "import json, os; print(json.dumps([dict(os.environ), os.getcwd(), os.getpid()]))"
    (tmp_path / "here").mkdir()
    run = run_mprun(
        "--",
        harness.MPRUN_PYTHON,
        "-c",
        script,
        cwd=tmp_path / "here",
        env={"MINE": "1", "OMP_NUM_THREADS": "7"},
    ).check()
    environment, directory, _ = json.loads(run.stdout)
    assert (environment["MINE"], environment["OMP_NUM_THREADS"]) == ("1", "7")
    assert "RANK" not in environment
    assert directory == str(tmp_path / "here")


def test_other_descriptors_are_the_programs(tmp_path: Path, mprun: Path) -> None:
    """`mprun -- diff <(one) <(two)` works."""
    done = subprocess.run(
        ["bash", "-c", f"{mprun} -- cat <(echo one) <(echo two)"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "one\ntwo\n"), done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_passed_on(start_mprun: StartCommand, tmp_path: Path, number: int) -> None:
    """Once; the program decides how it exits."""
    name = signal.Signals(number).name.removeprefix("SIG")
    script = (
        f"trap 'echo got >>got; n=1' {name}; echo >>ready; "
        "while test -z \"$n\"; do sleep 0.02; done; sleep 0.1; exit 17"
    )
    running = start_mprun("--", "sh", "-c", script, output=False)
    harness.wait_until(lambda: harness.marks(tmp_path / "ready"), what="the program")
    running.send_signal(number)
    running.wait(20).check(17)
    assert harness.marks(tmp_path / "got") == ["got"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_ends_the_program(
    start_mprun: StartCommand, tmp_path: Path, number: int
) -> None:
    script = "echo >>ready; exec sleep 60"
    running = start_mprun("--", "sh", "-c", script, output=False)
    harness.wait_until(lambda: harness.marks(tmp_path / "ready"), what="the program")
    running.send_signal(number)
    running.wait(20).check(128 + number)


def states(running: Running) -> set[str]:
    """Of the program, which is a shell, and of mprun, as its waiting parent sees it."""
    return {
        process.state
        for process in harness.list_processes().values()
        if process.pid == running.pid or process.name == "sh" and process in running.children()
    }


def test_mprun_stops_when_the_program_does(start_mprun: StartCommand, tmp_path: Path) -> None:
    """Not when asked to: a program may have something to do first, or refuse."""
    script = (
        "trap 'echo >>asked' TSTP; trap 'echo >>on' USR1; echo >>ready; "
        "until test -e stop; do sleep 0.02; done; trap - TSTP; kill -TSTP $$; exit 9"
    )
    running = start_mprun("--", "sh", "-c", script, output=False, process_group=0)
    harness.wait_until(lambda: harness.marks(tmp_path / "ready"), what="the program")
    running.send_signal(signal.SIGTSTP)
    harness.wait_until(lambda: harness.marks(tmp_path / "asked"), what="the program to be asked")
    running.send_signal(signal.SIGUSR1)
    harness.wait_until(lambda: harness.marks(tmp_path / "on"), what="mprun to go on")
    (tmp_path / "stop").write_text("")
    harness.wait_until(lambda: states(running) == {"T"}, what="both to stop")
    running.send_signal(signal.SIGCONT)
    running.wait(20).check(9)


def test_a_program_that_reads_in_the_background(mprun: Path, tmp_path: Path) -> None:
    """The shell shows the job as stopped (SIGTTIN), and learns of its end however it ends."""
    script = """
        set -m
        "$@" cat &
        until jobs -s | grep -q cat; do sleep 0.02; done
        wait $!
        echo "stopped by $(($? - 128))"
        kill -KILL $(pgrep -g $(jobs -p) -x cat)
        while kill -0 $! 2>&-; do sleep 0.02; done
        wait $!
        echo "ended with $?"
    """
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    argv = ["/bin/bash", "--norc", "-c", script, "bash", str(mprun.resolve()), "--"]
    terminal = Terminal(argv, tmp_path, env, COLUMNS)
    try:
        terminal.expect(f"stopped by {int(signal.SIGTTIN)}")
        terminal.expect("ended with 137")
        assert terminal.wait() == 0
    finally:
        terminal.close()


def test_stop_and_continue_a_program(start_mprun: StartCommand, tmp_path: Path) -> None:
    script = "echo >>ready; until test -e go; do sleep 0.02; done; exit 9"
    running = start_mprun("--", "sh", "-c", script, output=False, process_group=0)
    harness.wait_until(lambda: harness.marks(tmp_path / "ready"), what="the program")

    running.send_signal(signal.SIGTSTP)
    harness.wait_until(lambda: states(running) == {"T"}, what="both to stop")
    running.send_signal(signal.SIGCONT)
    (tmp_path / "go").write_text("")
    running.wait(20).check(9)


def test_a_program_leaves_no_process(run_mprun: RunCommand, tmp_path: Path) -> None:
    script = "sleep 600 & setsid sleep 600 & sleep 600 & exit 3"
    run = run_mprun("--", "sh", "-c", script, timeout=20).check(3)
    assert run.survivors == []


def test_a_stopped_neighbour_brings_no_hangup(mprun: Path, tmp_path: Path) -> None:
    """Of a script without a terminal, as in CI: its process group is orphaned all the time."""
    script = """
        trap 'echo hung up' HUP
        sleep 600 &
        kill -STOP $!
        "$1" -- true
        echo "ended with $?"
        kill -KILL $!
    """
    command = ["bash", "-c", script, "bash", mprun]
    done = subprocess.run(
        command, start_new_session=True, capture_output=True, text=True, timeout=60, check=False,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout == "ended with 0\n"


RESTLESS = """
#include <unistd.h>

int main(void) {
  for (int i = 0; i < 1000000; ++i) {
    if (fork() > 0) _exit(0);
    setsid();
  }
}
"""

CROWD = """
#include <stdio.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

int main(void) {
  for (int i = 0; i < 500; ++i) {
    if (fork() != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pause();
  }
  puts("here");
  fflush(stdout);
  pause();
}
"""


def build_program(folder: Path, name: str, text: str) -> Path:
    (folder / f"{name}.c").write_text(text)
    subprocess.run(["cc", "-O2", f"{name}.c", "-o", name], cwd=folder, check=True, timeout=60)
    return folder / name


def test_a_process_that_forks_and_exits_all_the_time_does_not_escape(
    run_mprun: RunCommand, tmp_path: Path
) -> None:
    """Each of its processes has ended before a scan of /proc is complete; the fixture finds the last one."""
    build_program(tmp_path, "restless", RESTLESS)
    for _ in range(3):
        run_mprun("--", "sh", "-c", "./restless & sleep 0.05").check()


def test_a_process_that_forks_and_exits_does_not_escape_on_a_crowded_machine(
    run_mprun: RunCommand, tmp_path: Path
) -> None:
    """A scan of all of /proc then takes long enough for a hundred of them."""
    build_program(tmp_path, "restless", RESTLESS)
    with subprocess.Popen([build_program(tmp_path, "crowd", CROWD)], stdout=subprocess.PIPE) as crowd:
        try:
            assert crowd.stdout is not None
            assert crowd.stdout.readline() == b"here\n"
            begun = time.monotonic()
            run_mprun("--", "sh", "-c", "./restless & sleep 0.05").check()
            assert time.monotonic() - begun < 6  # then mprun gives up
        finally:
            crowd.kill()
    harness.wait_until(lambda: not harness.living_descendants(), 60, "the crowd to end", pause=0.25)


def test_copies_of_a_program_are_ranks(run_mprun: RunCommand, tmp_path: Path) -> None:
    script = (
        'echo >>here; until test $(wc -l <here) -ge 3; do sleep 0.01; done; '
        'echo "$RANK/$LOCAL_RANK of $WORLD_SIZE/$LOCAL_WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT"'
    )
    run = run_mprun("-n", "3", "--", "sh", "-c", script).check()
    lines = sorted(run.stdout.splitlines())
    ports = {line.rpartition(":")[2] for line in lines}
    assert len(ports) == 1
    port = ports.pop()
    assert lines == [f"{rank}/{rank} of 3/3 at 127.0.0.1:{port}" for rank in range(3)]


def test_a_failed_copy_ends_the_others(run_mprun: RunCommand, tmp_path: Path) -> None:
    script = (
        'trap "echo terminated >>terminated; exit 0" TERM; echo >>here; '
        "until test $(wc -l <here) -ge 3; do sleep 0.01; done; "
        'test $RANK = 1 && exit 7; while :; do sleep 0.02; done'
    )
    run = run_mprun("-n", "3", "--", "sh", "-c", script, timeout=20).check(7)
    assert "exit code 7" in run.stderr
    assert "rank 1" in run.stderr, run
    assert harness.marks(tmp_path / "terminated") == ["terminated"] * 2


def test_options_that_mean_nothing_for_a_program(run_mprun: RunCommand) -> None:
    for words in (["--chunk-size", "3"], ["--retries", "1"], ["-n", "0"], ["-n", "many"]):
        run = run_mprun(*words, "--", "true").check(2)
        assert words[0].strip("-") in run.stderr or "processes" in run.stderr


# --- mprun SCRIPT.py ---------------------------------------------------------------------------

SHOW = """
import sys


def show(value):
    return [type(value).__name__, value, sys.argv[1:]]


if __name__ == "__main__":
    import mprun
    mprun.result([mprun.rank(), sys.argv[1:]])
"""


@pytest.fixture
def show(tmp_path: Path) -> str:
    """A script with a function, beside the test."""
    (tmp_path / "show.py").write_text(SHOW)
    return "show.py"


def test_a_function_and_its_inputs(run_mprun: RunCommand, show: str) -> None:
    """Each ARG is one input: JSON where it is JSON, else the text itself."""
    words = ["1", "-2.5", '"quoted"', "plain", "[1, 2]", '{"a": null}', "true", "None", ""]
    words += ["1e3", "01"]
    python = ["--python", harness.MPRUN_PYTHON]
    run = run_mprun(*python, "-n", "2", f"{show}:show", *words, output=True).check()
    expected = [1, -2.5, "quoted", "plain", [1, 2], {"a": None}, True, "None", "", 1000.0, "01"]
    assert [value for _, value, _ in run.values()] == expected
    assert [kind for kind, *_ in run.values()] == [type(value).__name__ for value in expected]
    assert {tuple(argv) for *_, argv in run.values()} == {()}


def test_arguments_that_look_like_options(run_mprun: RunCommand, show: str) -> None:
    """Everything after the script belongs to the script."""
    python = ["--python", harness.MPRUN_PYTHON]
    run = run_mprun(*python, f"{show}:show", "-n", "--explain", "-q", output=True).check()
    assert [value for _, value, _ in run.values()] == ["-n", "--explain", "-q"]


def test_a_script_without_a_function(run_mprun: RunCommand, show: str) -> None:
    """Ranks; ARGS are their sys.argv."""
    python = ["--python", harness.MPRUN_PYTHON]
    run = run_mprun(*python, "-n", "2", show, "--lr", "0.1", "-n", "--", "x", output=True).check()
    argv = ["--lr", "0.1", "-n", "--", "x"]
    assert run.values() == [[0, argv], [1, argv]]


def test_inputs_by_option(run_mprun: RunCommand, show: str) -> None:
    """--set gives the inputs, then ARGS are the script's arguments."""
    python = ["--python", harness.MPRUN_PYTHON]
    run = run_mprun(
        *python, "--set", 'inputs={"range": 2}', f"{show}:show", "a", "b", output=True
    ).check()
    assert run.values() == [["int", 0, ["a", "b"]], ["int", 1, ["a", "b"]]]


def test_a_function_without_inputs(run_mprun: RunCommand, show: str) -> None:
    run = run_mprun(f"{show}:show").check(2)
    assert "inputs" in run.stderr


def test_default_run_directory(run_mprun: RunCommand, show: str, tmp_path: Path) -> None:
    """runs/<job>/<timestamp>, a new one each time, and `latest` points to the newest."""
    python = ["--python", harness.MPRUN_PYTHON]
    for number in range(3):
        run_mprun(*python, f"{show}:show", str(number)).check()
        latest = tmp_path / "runs/show/latest"
        assert latest.is_symlink()
        line = json.loads((latest / "results.jsonl").read_text())
        assert line["value"][1] == number
    assert len(os.listdir(tmp_path / "runs/show")) == 4


def test_nothing_to_run(run_mprun: RunCommand) -> None:
    run = run_mprun().check(2)
    assert "mprun --help" in run.stderr
    assert run_mprun("no-such-script.py").check(2).stderr
    assert run_mprun("no-such-script.py:f", "1").check(2).stderr


def test_verbose_names_what_is_started(run_mprun: RunCommand) -> None:
    alone = run_mprun("-v", "--", "sh", "-c", "echo $$").check()
    assert alone.stderr == f"mprun: started pid {alone.stdout.strip()}\n"
    ranks = run_mprun("-v", "-n", "2", "--", "sh", "-c", 'echo "rank $RANK (pid $$) started"').check()
    assert sorted(ranks.stderr.splitlines()) == sorted(f"mprun: {line}" for line in ranks.stdout.splitlines())
