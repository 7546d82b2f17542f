"""Runs the real mprun and checks what it leaves: for tests/contract, integration and hangs.

Tests use the fixtures of conftest.py (`run_job`, `run_mprun`, `start_mprun`, `start_method`) and
`wait_until` from here. The pytest process is made a subreaper, so that a process that outlives its
mprun becomes our child and is seen.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent
MPRUN_BIN = Path(os.environ.get("MPRUN_BIN", ROOT / "build/dev/bin/mprun"))
MPRUN_PYTHON = os.environ.get("MPRUN_PYTHON", "/usr/bin/python3")
START_METHODS = ("fork", "spawn", "forkserver")
# Where shared memory is looked for; the tests of the harness itself use a folder of their own.
SHARED_MEMORY = Path(os.environ.get("HARNESS_SHARED_MEMORY", "/dev/shm"))

# A library that is preloaded into everything the tests start, such as a sanitizer's run-time; empty: none.
PRELOAD = os.environ.get("HARNESS_PRELOAD", "")

# Variables of the caller that would change a run; all MPRUN_* are removed too.
FOREIGN_VARIABLES = (
    "LD_PRELOAD",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "VIRTUAL_ENV",
    "XDG_CONFIG_HOME",
)

# How many times longer than usual to wait, on a slow machine: its time limits are for what never happens.
PATIENCE = float(os.environ.get("HARNESS_PATIENCE", "1"))

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def pythons() -> dict[tuple[int, int], str]:
    """The Pythons of this machine by version, the old ones too; of each version one."""
    names = [f"python3.{minor}" for minor in range(6, 16)]
    found = [path for name in ("python2", *names) if (path := shutil.which(name))]
    found += map(str, Path.home().glob(".pyenv/versions/[23].*/bin/python"))
    usable = {}
    for path in found:
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            major, minor = done.stdout.split(".")
            usable.setdefault((int(major), int(minor)), path)
    return dict(sorted(usable.items()))


def wait_until(
    condition: Callable[[], Any], timeout: float = 30, what: str = "the condition", pause: float = 0.01
) -> Any:
    """Waits for an event: returns the first true value, fails after `timeout` seconds; checks every `pause` seconds."""
    timeout *= PATIENCE
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s in vain for {what}")
        time.sleep(pause)
    return value


# A module for task scripts (`scripts={"events.py": EVENTS, ...}`): tasks and tests report to each other
# what has happened as lines in files, relative to the working directory.
EVENTS = '''
import os
import time


def mark(name, text=""):
    """Appends a line, even if other processes do so at the same time."""
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(fd, f"{text}\\n".encode())
    os.close(fd)


def wait_for(name, lines=1, seconds=30):
    """Returns when the file has that many lines."""
    deadline = time.monotonic() + seconds * float(os.environ.get("HARNESS_PATIENCE", "1"))
    pause = 0.005
    while True:
        try:
            with open(name, "rb") as file:
                if file.read().count(b"\\n") >= lines:
                    return
        except FileNotFoundError:
            pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited in vain for {lines} lines in {name}")
        time.sleep(pause)
        pause = min(1.1 * pause, 0.2)  # hundreds of workers that wait long must not keep the machine busy
'''


def marks(path: Path) -> list[str]:
    """The whole lines that tasks have left in a file with `mark`; none if it is not there."""
    try:
        return path.read_text(encoding="utf-8").split("\n")[:-1]
    except FileNotFoundError:
        return []


def library_settings(folder: Path) -> dict[str, str]:
    """Variables for torch, joblib, Open MPI and Guile programs; `folder` is for files that they leave when killed."""
    return {
        "TMPDIR": str(folder),
        "JOBLIB_TEMP_FOLDER": str(folder),  # otherwise /dev/shm, which concurrent tests look into
        "OMPI_MCA_btl": "^tcp",  # no complaints about the network: ranks of one machine share memory
        "OMPI_MCA_btl_sm_backing_directory": str(folder),  # Open MPI 5
        "OMPI_MCA_btl_vader_backing_directory": str(folder),  # Open MPI 4
        "GUILE_AUTO_COMPILE": "0",  # it would write to the user's cache
        "USE_LIBUV": "0",  # torch requests it by default, also where it was built without
    }


# --- processes ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Process:
    """The fields of /proc/PID/stat that the tests need."""

    pid: int
    name: str
    state: str
    ppid: int

    @property
    def alive(self) -> bool:
        """False for a zombie and for a process that is being torn down."""
        return self.state not in "ZX"

    def __str__(self) -> str:
        try:
            raw = Path(f"/proc/{self.pid}/cmdline").read_bytes()
        except OSError:
            raw = b""
        command = raw.replace(b"\0", b" ").decode(errors="replace").strip()
        who = f"{self.pid} ({self.name}, {self.state}, parent {self.ppid})"
        return f"{who}: {command or 'no command line'}"


def find_process(pid: int) -> Process | None:
    """That process, unless it has ended and been reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    name, rest = stat[stat.index("(") + 1 :].rsplit(")", 1)  # a name may hold anything
    state, ppid = rest.split()[:2]
    return Process(pid, name, state, int(ppid))


def list_processes() -> dict[int, Process]:
    """Every existing process, by pid."""
    found = (find_process(int(entry)) for entry in os.listdir("/proc") if entry.isdigit())
    return {process.pid: process for process in found if process}


def descendants(
    root: int,
    processes: Mapping[int, Process] | None = None,
    without: frozenset[int] = frozenset(),
) -> list[Process]:
    """All processes below `root`, zombies included, but none of `without` and none below those.

    `processes`: the existing ones.
    """
    processes = list_processes() if processes is None else processes
    children: dict[int, list[Process]] = {}
    for process in processes.values():
        children.setdefault(process.ppid, []).append(process)
    found: list[Process] = []
    pending = [root]
    while pending:
        below = [child for child in children.get(pending.pop(), []) if child.pid not in without]
        found += below
        pending += [process.pid for process in below]
    return found


def become_subreaper() -> None:
    """Makes orphans of our children our own children."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def is_alive(pid: int) -> bool:
    """True until the process has ended, whether or not its parent has asked for its status."""
    process = find_process(pid)
    return process is not None and process.alive


def reap_zombies() -> None:
    """Reaps every ended child. Only after a test: Popen objects lose their exit status."""
    for process in descendants(os.getpid()):
        if process.ppid == os.getpid() and not process.alive:
            try:
                os.waitpid(process.pid, os.WNOHANG)
            except ChildProcessError:  # a Popen object did so
                pass


def living_descendants(ignored: frozenset[int] = frozenset()) -> list[Process]:
    """Our living descendants, without the children in `ignored` and what is below them."""
    return [process for process in descendants(os.getpid(), without=ignored) if process.alive]


def kill_all(processes: Sequence[Process]) -> None:
    """Ends our descendants for good, so that one failed test does not fail the next."""
    for process in processes:
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


# --- other leftovers ---------------------------------------------------------------------------


def open_fds(pid: int | str = "self") -> dict[int, str]:
    """A process's open file descriptors and what they lead to; none if we have no permission."""
    fds = {}
    try:
        entries = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return {}
    for entry in entries:
        try:
            fds[int(entry)] = os.readlink(f"/proc/{pid}/fd/{entry}")
        except OSError:  # closed meanwhile: the descriptor of this very listing
            pass
    return fds


def shared_memory() -> set[str]:
    """The names of the shared memory objects and semaphores of this machine."""
    try:
        return set(os.listdir(SHARED_MEMORY))
    except FileNotFoundError:
        return set()


def unused_shared_memory(names: set[str]) -> set[str]:
    """Those of `names` that exist and that no process has mapped or open: left for good."""
    left = {}  # name: inode, as sem_open() maps a new semaphore under another name
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            left[name] = str((SHARED_MEMORY / name).stat().st_ino)
    for pid in list_processes():
        if not left:
            break
        try:
            lines = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
        except OSError:  # it has ended, or we have no permission
            continue
        mapped = {line.split()[4] for line in lines if f" {SHARED_MEMORY}/" in line}
        opened = "\n".join(open_fds(pid).values())
        left = {
            name: inode
            for name, inode in left.items()
            if inode not in mapped and str(SHARED_MEMORY / name) not in opened
        }
    return set(left)


# --- runs --------------------------------------------------------------------------------------


@dataclass
class Run:
    """How one mprun ended and the contents of its run directory."""

    returncode: int  # negative: the signal that ended mprun
    stdout: str
    stderr: str
    run_dir: Path
    survivors: list[str]  # processes of the job that were alive when mprun had ended

    def results(self) -> list[dict[str, Any]]:
        """The lines of results.jsonl, by task number."""
        with open(self.run_dir / "results.jsonl", encoding="utf-8") as lines:
            return sorted((json.loads(line) for line in lines), key=lambda result: result["task"])

    def values(self) -> list[Any]:
        """The values of all tasks, in input order; fails unless every one succeeded."""
        results = self.results()
        failed = [result for result in results if result["status"] != "ok"]
        assert (
            not failed
        ), f"{len(failed)} of {len(results)} tasks did not succeed, first: {failed[0]}\n{self}"
        return [result["value"] for result in results]

    def summary(self) -> dict[str, Any]:
        """summary.json."""
        return json.loads((self.run_dir / "summary.json").read_text(encoding="utf-8"))

    def joblog(self) -> list[dict[str, str]]:
        """The rows of joblog.tsv, keyed by its header."""
        header, *rows = (self.run_dir / "joblog.tsv").read_text(encoding="utf-8").splitlines()
        names = header.split("\t")
        return [dict(zip(names, row.split("\t", len(names) - 1))) for row in rows]

    def hangs(self) -> list[dict[str, Any]]:
        """The hang reports, in order."""
        files = sorted((self.run_dir / "hangs").glob("*.json"), key=lambda file: int(file.stem))
        return [json.loads(file.read_text(encoding="utf-8")) for file in files]

    def log(self, worker: int, stream: str = "out") -> str:
        """The stdout ("out") or stderr ("err") of a worker (or rank)."""
        return (self.run_dir / "logs" / f"worker-{worker}.{stream}").read_text(
            encoding="utf-8", errors="replace"
        )

    def check(self, returncode: int = 0) -> Run:
        """Fails with all output of mprun unless it ended with this code."""
        assert self.returncode == returncode, f"expected exit code {returncode}\n{self}"
        return self

    def __str__(self) -> str:
        return f"mprun ended with {self.returncode}\n{_quote(self.stdout, self.stderr)}"


def remove_sysv_objects(printed: str) -> None:
    """Removes the System V objects that a program has named ("System V queues 3 4"): they outlive it."""
    for kind, numbers in re.findall(r"^System V (semaphores|queues)((?: \d+)+)$", printed, re.MULTILINE):
        option = "-s" if kind == "semaphores" else "-q"
        for number in numbers.split():
            subprocess.run(["ipcrm", option, number], check=False, stderr=subprocess.DEVNULL)


class Running:
    """A live mprun, for tests that signal or kill it. Its output goes to files, not pipes."""

    def __init__(
        self,
        argv: Sequence[str],
        run_dir: Path,
        folder: Path,
        siblings: Sequence[Running],
        **popen: Any,
    ) -> None:
        """Starts `argv`. `siblings` may run beside it; `popen` is for subprocess.Popen."""
        self.argv = list(argv)
        self.run_dir = run_dir
        self.run: Run | None = None
        self._siblings = siblings
        self._earlier = {
            process.pid for process in descendants(os.getpid()) if process.ppid == os.getpid()
        }
        self._stdout_path = folder / f"{run_dir.name}.stdout"
        self._stderr_path = folder / f"{run_dir.name}.stderr"
        for path in (self._stdout_path, self._stderr_path):
            path.unlink(missing_ok=True)  # a killed mprun on the same run directory may still write to its own
        with open(self._stdout_path, "wb") as out, open(self._stderr_path, "wb") as err:
            self.process = subprocess.Popen(self.argv, stdout=out, stderr=err, **popen)
        self.pid = self.process.pid

    @property
    def stdout(self) -> str:
        """Its stdout so far."""
        return self._stdout_path.read_text(encoding="utf-8", errors="replace")

    @property
    def stderr(self) -> str:
        """Its stderr so far."""
        return self._stderr_path.read_text(encoding="utf-8", errors="replace")

    def beginning(self) -> str:
        """The first 4 KiB of its stdout, which may be long."""
        with open(self._stdout_path, "rb") as file:
            return file.read(4096).decode(errors="replace")

    def send_signal(self, number: int) -> None:
        """Signals only mprun."""
        self.process.send_signal(number)

    def children(self) -> list[Process]:
        """The living processes below mprun."""
        return [process for process in descendants(self.pid) if process.alive]

    def wait(self, timeout: float = 60) -> Run:
        """Waits for its end; after `timeout` seconds kills it all and fails with its output."""
        if self.run:
            return self.run
        timeout *= PATIENCE
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            tree = "\n".join(str(process) for process in self.children())
            self.stop()
            raise AssertionError(
                f"mprun had not ended after {timeout} s; below it ran:\n{tree}\n"
                + _quote(self.stdout, self.stderr)
            ) from None
        survivors = []
        if (
            self.process.returncode != -signal.SIGKILL
        ):  # then it had time to end every process
            others = self._earlier | {sibling.pid for sibling in self._siblings}
            survivors = [str(process) for process in living_descendants(frozenset(others))]
        self.run = Run(self.process.returncode, self.stdout, self.stderr, self.run_dir, survivors)
        return self.run

    def stop(self) -> None:
        """Kills what still runs of it, and waits until all have ended."""
        below = self.children()
        self.process.kill()
        kill_all(below)
        self.process.wait()
        wait_until(lambda: not any(is_alive(process.pid) for process in below), 30, "killed processes to end")


def _put(path: Path, text: str) -> None:
    """Writes a file, unless it has that content already: an mprun that was started before may be reading it."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


class Runner:
    """Starts mprun for one test, in that test's own folder; what the fixtures hand out."""

    def __init__(self, mprun: Path, folder: Path) -> None:
        self.folder = folder
        self.started: list[Running] = []
        self._mprun = mprun
        (folder / "home").mkdir()

    def start(
        self,
        *arguments: str | Path,
        output: bool = True,
        stdin: str | bytes | int | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        **popen: Any,
    ) -> Running:
        """Starts mprun, with `--output` unless requested otherwise; `env` is added to ours.

        `stdin` is its standard input: text, or a descriptor that is taken over.
        """
        words = [str(argument) for argument in arguments]
        run_dir = self._run_dir(words, cwd or self.folder)
        if output and not _has_option(words, "--output"):
            words = ["--output", str(run_dir), *words]
        with self._stdin_file(stdin, run_dir) as source:
            return self._launch(
                [str(self._mprun), *words], run_dir, env, stdin=source, cwd=cwd, **popen
            )

    def start_plain(
        self,
        *argv: str | Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        **popen: Any,
    ) -> Running:
        """Starts a program without mprun, in the same environment, for comparison with a run."""
        words = [str(word) for word in argv]
        if PRELOAD:  # what others do not free at their end is not our fault
            options = f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"
            env = {"ASAN_OPTIONS": options, **(env or {})}
        with open(os.devnull, "rb") as source:
            return self._launch(
                words, self._run_dir([], self.folder), env, stdin=source, cwd=cwd, **popen
            )

    def start_job(
        self,
        spec: Mapping[str, Any] | str | Path,
        *options: str | Path,
        scripts: Mapping[str, str] | None = None,
        **start: Any,
    ) -> Running:
        """Starts a job; a mapping is written to job.json, beside `scripts` (name: text)."""
        for name, text in (scripts or {}).items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            _put(path, text)
        if isinstance(spec, Mapping):
            path = self.folder / "job.json"
            _put(path, json.dumps({"version": 1, **spec}, indent=2))
        else:
            path = Path(spec)
        words = [str(option) for option in options]
        if not _has_option(words, "--python") and _wants_python(path):
            words += ["--python", MPRUN_PYTHON]
        return self.start(*words, path, **start)

    def finish(self) -> None:
        """Ends what the test left running."""
        for running in self.started:
            if running.process.poll() is None:
                running.stop()
            remove_sysv_objects(running.beginning())

    def _launch(
        self,
        argv: Sequence[str],
        run_dir: Path,
        env: Mapping[str, str] | None,
        cwd: Path | None,
        **popen: Any,
    ) -> Running:
        """Starts `argv` with `env` added to an environment without the user's settings."""
        variables = {name: value for name, value in os.environ.items() if not _is_foreign(name)}
        variables.update(HOME=str(self.folder / "home"), PYTHONDONTWRITEBYTECODE="1")
        variables.update(env or {})
        libraries = [PRELOAD, variables.get("LD_PRELOAD", "")]
        if any(libraries):
            variables["LD_PRELOAD"] = ":".join(filter(None, libraries))
        running = Running(
            argv,
            run_dir,
            self.folder,
            self.started,
            env=variables,
            cwd=cwd or self.folder,
            **popen,
        )
        self.started.append(running)
        return running

    def _run_dir(self, words: Sequence[str], cwd: Path) -> Path:
        """The --output among `words`, else a new folder of the test."""
        for word, value in zip(words, [*words[1:], ""]):
            if word == "--output":
                return cwd / value
            if word.startswith("--output="):
                return cwd / word.partition("=")[2]
            if word == "--":
                break
        number = len(self.started)
        return self.folder / (f"out-{number + 1}" if number else "out")

    def _stdin_file(self, stdin: str | bytes | int | None, run_dir: Path) -> IO[bytes]:
        """A file to read from: no thread has to feed a pipe."""
        if isinstance(stdin, int):
            return open(stdin, "rb")
        if stdin is None:
            return open(os.devnull, "rb")
        path = self.folder / f"{run_dir.name}.stdin"
        path.write_bytes(stdin.encode() if isinstance(stdin, str) else stdin)
        return open(path, "rb")


RunCommand = Callable[..., Run]  # the fixtures run_job and run_mprun
StartCommand = Callable[..., Running]  # the fixtures start_job, start_mprun and start_plain
MountDisk = Callable[[str], Path]  # the fixture mount_disk


def _quote(stdout: str, stderr: str) -> str:
    return f"--- stdout\n{stdout}\n--- stderr\n{stderr}"


def _is_foreign(name: str) -> bool:
    return name in FOREIGN_VARIABLES or name.startswith("MPRUN_")


def _has_option(words: Sequence[str], option: str) -> bool:
    own = words[: words.index("--")] if "--" in words else words
    return any(word == option or word.startswith(option + "=") for word in own)


def _wants_python(spec_path: Path) -> bool:
    """True for a readable spec of a Python script that leaves the interpreter open."""
    try:
        spec = json.loads(spec_path.read_text(encoding="utf-8"))
        return ".py" in spec.get("script", "") and "python" not in spec
    except (OSError, ValueError, TypeError, AttributeError):  # malformed on purpose
        return False
