"""`mprun doctor`: this machine, the runtimes of a program, those of a script."""

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
from harness import Run, RunCommand

# A region on three threads, then a fork whose child leaves OpenMP alone; exits with 5.
FORKS = r"""
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  int threads = 0;
#pragma omp parallel num_threads(3) reduction(+ : threads)
  threads += 1;
  pid_t child = fork();
  if (child == 0) return 0;
  waitpid(child, NULL, 0);
  printf("%d threads\n", threads);
  return 5;
}
"""

# Opens each argument privately, runs a region of it on three threads, then forks.
OPENS = r"""
#include <dlfcn.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>
static void nothing(void* data) { (void)data; }
int main(int count, char** names) {
  for (int i = 1; i < count; ++i) {
    void* library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return 9;
    void (*parallel)(void (*)(void*), void*, unsigned, unsigned) = dlsym(library, "GOMP_parallel");
    if (parallel != NULL) parallel(nothing, NULL, 3, 0);
  }
  pid_t child = fork();
  if (child == 0) return 0;
  waitpid(child, NULL, 0);
  return 0;
}
"""


def build(folder: Path, name: str, text: str, *options: str) -> Path:
    """Compiles a C program or library."""
    source, target = folder / f"{name}.c", folder / name
    source.write_text(text, encoding="utf-8")
    subprocess.run(["gcc", "-O1", "-o", target, source, *options], check=True)
    return target


def libgomp() -> Path:
    """The libgomp that programs get here."""
    done = subprocess.run(
        ["gcc", "-print-file-name=libgomp.so.1"], check=True, capture_output=True, text=True
    )
    path = Path(done.stdout.strip())
    return path if path.is_absolute() else Path(path.name)


def make_old_libgomp(folder: Path) -> Path:
    """A copy without omp_pause_resource_all, as before GCC 9."""
    source = libgomp()
    if not source.is_absolute():  # gcc leaves it to the loader, which knows where it is
        listed = subprocess.run(["ldconfig", "-p"], check=True, capture_output=True, text=True)
        line = next(line for line in listed.stdout.splitlines() if "libgomp.so.1 " in line)
        source = Path(line.rpartition("=> ")[2])
    raw = source.read_bytes()
    assert raw.count(b"omp_pause_resource_all\0") >= 1
    folder.mkdir()
    copy = folder / "libgomp.so.1"
    copy.write_bytes(raw.replace(b"omp_pause_resource_all\0", b"omp_pause_resource_ALL\0"))
    return copy


def report(run: Run) -> dict[str, Any]:
    """The report of a run with --json."""
    return json.loads(run.stdout)


def first_process(run: Run) -> dict[str, Any]:
    """The process of a report that has the lowest number, with its runtimes by kind."""
    process = min(report(run)["processes"], key=lambda process: process["pid"])
    process["runtimes"] = {runtime["kind"]: runtime for runtime in process["runtimes"]}
    return process


def doctor_python(run_mprun: RunCommand, *words: str | Path, **start: Any) -> Run:
    """`mprun --python PYTHON doctor WORDS...`"""
    return run_mprun("--python", harness.MPRUN_PYTHON, "doctor", *words, **start)


@pytest.fixture
def forks(tmp_path: Path) -> Path:
    """The program FORKS."""
    return build(tmp_path, "forks", FORKS, "-fopenmp")


# --- the machine -------------------------------------------------------------------------------


def test_the_machine(run_mprun: RunCommand) -> None:
    """Text and JSON agree with each other and with what Python knows."""
    text = doctor_python(run_mprun).check()
    assert text.stderr == ""
    features, _, limits = text.stdout.partition("mprun can work here; what limits it:\n")
    cpus = len(os.sched_getaffinity(0))
    assert re.search(rf"^  \* \d+ CPUs?: ", limits), limits  # a quota may leave fewer than the affinity
    assert 1 <= int(re.search(r"\d+", limits)[0]) <= cpus
    assert all(line.startswith("  * ") for line in limits.splitlines())
    findings = report(doctor_python(run_mprun, "--json").check())
    assert (findings["version"], findings["fit"]) == (1, True)
    machine = findings["machine"]
    for name, feature in machine.items():
        assert any(line.startswith(name) for line in features.splitlines())
        assert feature["ok"] or not feature["needed"]
    assert machine["python"]["value"].startswith(harness.MPRUN_PYTHON + " (3.")
    assert Path(machine["preload library"]["value"]).is_file()
    assert (Path(machine["sitecustomize"]["value"]) / "sitecustomize.py").is_file()
    release = Path("/proc/sys/kernel/osrelease").read_text(encoding="ascii").strip()
    assert machine["kernel"]["value"] == release
    assert {"pidfd_open", "close_range", "process_vm_readv", "memfd_create"} < set(machine)
    assert {"/proc/self/syscall", "ptrace_scope", "child subreaper"} < set(machine)
    assert {"open files", "libomp", "CPUs", "memory", "/dev/shm", "huge pages", "processes"} < set(machine)


def test_the_open_files_are_those_of_the_shell(mprun: Path, tmp_path: Path) -> None:
    doctor = f"{mprun} --python {harness.MPRUN_PYTHON} doctor --json"
    done = subprocess.run(
        ["bash", "-c", f"ulimit -S -n 77; ulimit -H -n 99; exec {doctor}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    findings = json.loads(done.stdout)["machine"]["open files"]
    assert findings["value"] == "77 of 99"
    assert "33 workers" in findings["limit"]


def test_a_machine_without_its_python(run_mprun: RunCommand, tmp_path: Path) -> None:
    """Nothing can be run: exit code 1, and the rest is still shown."""
    run = run_mprun("doctor", "--python", "/no/such/python").check(1)
    assert "/no/such/python" in run.stdout
    assert "\nmprun cannot work here as it should: python; what limits it:\n" in run.stdout
    old = tmp_path / "python3.9"
    old.write_text("#!/bin/sh\necho 3.9.2\n")
    old.chmod(0o755)
    findings = report(run_mprun("doctor", "--json", "--python", old).check(1))
    assert (findings["fit"], findings["machine"]["python"]["ok"]) == (False, False)
    assert "3.11" in findings["machine"]["python"]["use"]
    assert findings["machine"]["pidfd_open"]["ok"]


def test_a_free_threaded_python_without_an_extension(run_mprun: RunCommand, tmp_path: Path) -> None:
    python = tmp_path / "python3.14t"
    python.write_text("#!/bin/sh\necho 3.14.7\necho .cpython-314t-of-no-machine.so\n", encoding="utf-8")
    python.chmod(0o755)
    found = report(run_mprun("doctor", "--json", "--python", python).check(1))["machine"]["python"]
    assert (found["value"], found["ok"]) == (f"{python} (3.14.7)", False)
    assert found["use"] == f"free-threaded: build mprun with -DMPRUN_FREE_THREADED_PYTHONS={python}"


def test_a_report_that_cannot_be_written(mprun: Path, tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [mprun, "doctor"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 125
    assert "could not be written: No space left" in done.stderr


# --- a program ---------------------------------------------------------------------------------


def test_an_openmp_program(run_mprun: RunCommand, forks: Path) -> None:
    """Its output and status are its own; the report is on standard error."""
    run = run_mprun("doctor", "--", forks).check(5)
    assert run.stdout == "3 threads\n"
    assert f"mprun doctor: {forks}: exit code 5\n" in run.stderr
    assert "forked with 3 threads" in run.stderr
    assert "made safe  libgomp  " in run.stderr
    assert run.stderr.endswith("1 runtime: 1 made safe\n")


def test_json_is_alone_on_standard_output(run_mprun: RunCommand, forks: Path) -> None:
    run = run_mprun("doctor", "--json", "--", forks).check(5)
    assert run.stderr == "3 threads\n"
    assert report(run)["exit_code"] == 5
    assert report(run)["programs"] == [str(forks)]
    process = first_process(run)
    assert (process["program"], process["forked"], process["threads"]) == (str(forks), True, 3)
    assert list(process["runtimes"]) == ["libgomp"]
    copy = process["runtimes"]["libgomp"]
    assert "libgomp.so.1" in copy["path"]
    assert (copy["adapter"], copy["adapter_on"]) == ("libgomp", True)
    assert copy["can_pause"] and copy["team"]
    assert copy["at_fork"] == "made safe"


@pytest.mark.parametrize("off", ["-libgomp", "-all"])
def test_an_adapter_that_is_switched_off(run_mprun: RunCommand, forks: Path, off: str) -> None:
    run = run_mprun("doctor", "--json", "--", forks, env={"MPRUN_ADAPTERS": off}).check(5)
    process = first_process(run)
    copy = process["runtimes"]["libgomp"]
    assert process["forked"]
    assert (copy["adapter_on"], copy["team"], copy["at_fork"]) == (False, True, "at risk")
    assert "switched off" in copy["explanation"]


def test_a_program_that_never_forks(run_mprun: RunCommand, tmp_path: Path) -> None:
    """It is shown in its final state; threads that spin after a region are waited for."""
    text = FORKS.replace("fork()", "getpid()").replace("num_threads(3)", "num_threads(2)")
    program = build(tmp_path, "ends", text, "-fopenmp")
    spin = {"GOMP_SPINCOUNT": "1000000"}
    process = first_process(run_mprun("doctor", "--json", "--", program, env=spin).check(5))
    assert (process["forked"], process["threads"]) == (False, 2)
    assert process["runtimes"]["libgomp"]["team"]


def test_an_old_libgomp(run_mprun: RunCommand, forks: Path, tmp_path: Path) -> None:
    old = make_old_libgomp(tmp_path / "old")
    env = {"LD_LIBRARY_PATH": str(old.parent)}
    run = run_mprun("doctor", "--json", "--", forks, env=env).check(5)
    copy = first_process(run)["runtimes"]["libgomp"]
    assert copy["path"] == str(old)
    assert (copy["can_pause"], copy["team"], copy["at_fork"]) == (False, True, "made safe")
    assert "libomp.so.5" in copy["explanation"]
    assert any(str(old) in note and "too old" in note for note in report(run)["notes"])


def test_every_copy_is_shown(run_mprun: RunCommand, tmp_path: Path) -> None:
    """Those opened RTLD_LOCAL, each with its own verdict."""
    program, old = build(tmp_path, "opens", OPENS), make_old_libgomp(tmp_path / "old")
    run = run_mprun("doctor", "--json", "--", program, libgomp(), old).check()
    runtimes = min(report(run)["processes"], key=lambda process: process["pid"])["runtimes"]
    assert [runtime["kind"] for runtime in runtimes] == ["libgomp"] * 2
    assert {runtime["path"] == str(old): runtime["at_fork"] for runtime in runtimes} == {
        False: "made safe",
        True: "made safe",
    }


@pytest.mark.parametrize(("build_number", "kind"), enumerate(["serial", "pthread", "openmp"]))
@pytest.mark.parametrize("symbol", ["openblas_get_parallel", "scipy_openblas_get_parallel64_"])
def test_builds_of_openblas(
    run_mprun: RunCommand, tmp_path: Path, build_number: int, kind: str, symbol: str
) -> None:
    """A stand-in that answers as they do; recognized by the answer, under the names of wheels too."""
    text = f"int {symbol}(void) {{ return {build_number}; }}\n"
    library = build(tmp_path, "libblas.so", text, "-shared", "-fPIC")
    program = build(tmp_path, "opens", OPENS)
    process = first_process(run_mprun("doctor", "--json", "--", program, library).check())
    copy = process["runtimes"][f"openblas-{kind}"]
    assert (copy["path"], copy["at_fork"]) == (str(library), "safe")
    assert copy["adapter"] == ("libgomp" if kind == "openmp" else None)


def test_processes_that_a_program_starts(run_mprun: RunCommand, forks: Path) -> None:
    """Programs without a runtime are named too."""
    run = run_mprun("doctor", "--json", "--", "sh", "-c", f"{forks}; exec {forks}").check(5)
    findings = report(run)
    assert str(forks) in findings["programs"]
    assert str(Path(shutil.which("sh") or "/bin/sh").resolve()) in findings["programs"]
    assert {process["program"] for process in findings["processes"]} == {str(forks)}
    assert len(findings["processes"]) == 2


def test_a_program_without_the_adapters(run_mprun: RunCommand, tmp_path: Path) -> None:
    program = build(tmp_path, "static", "int main(void) { return 0; }\n", "-static")
    run = run_mprun("doctor", "--", program).check()
    assert "statically linked" in run.stderr
    assert report(run_mprun("doctor", "--json", "--", program).check())["programs"] == []


def test_an_inner_mprun_keeps_its_notes(run_mprun: RunCommand, mprun: Path, forks: Path) -> None:
    """Processes that the inner mprun starts cause no warning."""
    run = run_mprun("doctor", "--", mprun, "--", forks).check(5)
    assert "warning" not in run.stderr


def test_python_with_a_pool(run_mprun: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text(
        "import multiprocessing, torch\n"
        "torch.set_num_threads(2)\n"
        "def total(n):\n    return int(torch.ones(n).sum())\n"
        "if __name__ == '__main__':\n"
        "    total(1000000)\n"
        "    with multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "        print(pool.map(total, [1000000] * 3))\n",
        encoding="utf-8",
    )
    run = run_mprun("doctor", "--json", "--", harness.MPRUN_PYTHON, "pool.py", timeout=120).check()
    assert run.stderr.endswith("[1000000, 1000000, 1000000]\n")
    process = first_process(run)
    assert process["command"] == f"{harness.MPRUN_PYTHON} pool.py"
    assert process["forked"]
    runtimes = process["runtimes"]
    assert {"python", "torch"} <= set(runtimes)
    assert {runtimes[kind]["at_fork"] for kind in ("python", "torch")} == {"made safe"}
    if "libgomp" in runtimes:
        assert (runtimes["libgomp"]["team"], runtimes["libgomp"]["at_fork"]) == (True, "made safe")


@pytest.mark.parametrize(
    ("option", "verdict"), [("-B", "made safe"), ("-I", "at risk"), ("-S", "at risk")]
)
def test_an_isolated_python_is_without_the_adapters_of_python(
    run_mprun: RunCommand, tmp_path: Path, option: str, verdict: str
) -> None:
    """Those in C are still in it."""
    build(tmp_path, "libmindspore_core.so", "", "-shared")
    program = (
        "import ctypes, os\n"
        "ctypes.CDLL('./libmindspore_core.so')\n"
        "os.waitpid(os.fork() or os._exit(0), 0)\n"
    )
    run = run_mprun("doctor", "--json", "--", harness.MPRUN_PYTHON, option, "-c", program).check()
    runtimes = first_process(run)["runtimes"]
    assert (runtimes["mindspore"]["at_fork"], runtimes["python"]["at_fork"]) == (verdict, "made safe")
    assert runtimes["mindspore"]["adapter_on"] is (verdict == "made safe")
    assert ("-I, -E or -S" in runtimes["mindspore"]["explanation"]) is (verdict == "at risk")


# --- a script ----------------------------------------------------------------------------------


def test_a_script_is_imported(run_mprun: RunCommand, tmp_path: Path) -> None:
    """Not as __main__, with its own folder and arguments; what it prints is not in the report."""
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "mine.py").write_text(
        "import sys, torch\n"
        "print(__name__, sys.argv[1:], sys.path[0])\n"
        "if __name__ == '__main__':\n    raise SystemExit('never')\n",
        encoding="utf-8",
    )
    run = doctor_python(run_mprun, "scripts/mine.py", "a", "--", "-n", timeout=120).check()
    assert run.stderr == f"mine ['a', '--', '-n'] {folder}\n"
    assert run.stdout.startswith("mprun doctor: scripts/mine.py: imported\n")
    assert "made safe  torch  " in run.stdout
    findings = report(doctor_python(run_mprun, "--json", "scripts/mine.py", timeout=120).check())
    assert (findings["imported"], findings["exit_code"]) == (True, 0)
    assert "torch" in {runtime["kind"] for runtime in findings["processes"][0]["runtimes"]}


def test_a_script_has_the_threads_of_a_job(run_mprun: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import os; print(os.environ['OMP_NUM_THREADS'], 'MPRUN_RUN_DIR' in os.environ)"
    )
    run = doctor_python(run_mprun, "--threads-per-worker", "3", "mine.py").check()
    assert run.stderr == "3 False\n"
    run = doctor_python(run_mprun, "mine.py", env={"OMP_NUM_THREADS": "7"}).check()
    assert run.stderr == "7 False\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise ValueError('no good')", "ValueError: no good"),
        ("import no_such_module", "No module named 'no_such_module'"),
        ("import sys; sys.exit(0)", "sys.exit(0)"),
        ("def broken(:", "SyntaxError"),
    ],
)
def test_a_script_that_cannot_be_imported(
    run_mprun: RunCommand, tmp_path: Path, text: str, words: str
) -> None:
    """Its traceback without mprun's own frames, one message, and the report up to there."""
    (tmp_path / "bad.py").write_text(text + "\n", encoding="utf-8")
    run = doctor_python(run_mprun, "bad.py").check(3)
    message = run.stderr.splitlines()[-1]
    assert message.startswith(f"mprun: cannot import {tmp_path / 'bad.py'}: ")
    assert words in message
    assert "import_script" not in run.stderr
    assert run.stdout.startswith("mprun doctor: bad.py: exit code 3\n")
    assert "python" in run.stdout


# --- what is wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nothere.py"], 2, "no such file"),
        (["--", "no-such-program"], 127, "no-such-program: command not found"),
        (["--", "/"], 126, "/: permission denied"),
        (["--"], 2, "no COMMAND after --"),
        (["job.json"], 2, "doctor: found job.json, allowed: nothing, a SCRIPT.py, or -- COMMAND"),
        (["mine.py:function"], 2, "doctor: found mine.py:function"),
        (["--unknown"], 2, "unknown option --unknown"),
        (["--retries", "1", "--", "true"], 2, "--retries 1 is only valid with a job"),
        (["--python", "/no/such/python", "here.py"], 3, "/no/such/python"),
    ],
)
def test_what_cannot_be_examined(
    run_mprun: RunCommand, tmp_path: Path, words: list[str], code: int, message: str
) -> None:
    """One message and no report."""
    (tmp_path / "here.py").write_text("")
    run = run_mprun("doctor", *words).check(code)
    assert message in run.stderr
    assert run.stderr.count("mprun: ") == 1
    assert "mprun doctor:" not in run.stdout + run.stderr


def test_json_is_refused_elsewhere(run_mprun: RunCommand) -> None:
    for words in (["--json", "--", "true"], ["check", "--json", "job.json"], ["--json", "x.py"]):
        run = run_mprun(*words).check(2)
        assert "--json is only valid with `mprun doctor` or `mprun inspect`" in run.stderr
