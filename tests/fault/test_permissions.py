"""Permissions: nothing listens, nothing private is disclosed, nothing is executed that was not asked for."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import RunCommand, Running, StartCommand, wait_until

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run as another user")

WAITS = """
import events


def run(number):
    events.mark("runs")
    events.wait_for("go")
    return number
"""


@pytest.fixture
def waiting_job(start_job: StartCommand, start_method: str, tmp_path: Path) -> Running:
    """A job whose two workers wait for the file "go"."""
    spec = {"script": "job.py:run", "processes": 2, "inputs": {"range": 2}, "start_method": start_method}
    running = start_job(spec, scripts={"job.py": WAITS, "events.py": harness.EVENTS})
    wait_until(lambda: len(harness.marks(tmp_path / "runs")) == 2, 30, "two tasks")
    return running


def let_go(running: Running, tmp_path: Path) -> harness.Run:
    (tmp_path / "go").write_text("\n")
    return running.wait().check()


def sockets_of(running: Running) -> set[str]:
    """The inodes of all sockets in the job's tree."""
    tree = [running.pid, *(process.pid for process in running.children())]
    targets = [target for pid in tree for target in harness.open_fds(pid).values()]
    return {target[len("socket:[") : -1] for target in targets if target.startswith("socket:[")}


def note_box(running: Running) -> bytes:
    """The abstract address of a job's notes."""
    name = rf"@mprun-(?:{'|'.join(str(process.pid) for process in running.children())})-[0-9a-f]{{16}}"
    found = re.search(name, Path("/proc/net/unix").read_text(encoding="ascii"))
    assert found, "no socket for notes"
    return b"\0" + found[0][1:].encode()


# --- channels ----------------------------------------------------------------------------------


def test_nothing_listens(waiting_job: Running, tmp_path: Path) -> None:
    """No socket of the job has a name, except the one of notes; none is a network socket."""
    ours = sockets_of(waiting_job)
    assert ours
    named = []
    for line in Path("/proc/net/unix").read_text(encoding="ascii").splitlines()[1:]:
        words = line.split()
        if words[6] in ours and len(words) > 7:
            named.append((words[4], words[7]))
    assert len(named) == 1 and named[0][0] == "0002", named  # a datagram socket
    for table in ("tcp", "tcp6", "udp", "udp6", "raw"):
        path = Path("/proc/net", table)
        inodes = {line.split()[9] for line in path.read_text().splitlines()[1:]} if path.exists() else set()
        assert not inodes & ours, table
    let_go(waiting_job, tmp_path)


SEND = """
import socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
    sender.setblocking(False)
    for text in (b"libgomp\\nTHE SKY FALLS", b"history\\nend 1 9", b"x" * 9000, b"", b"no line"):
        for _ in range(300):
            try:
                sender.sendto(text, b"\\0" + sys.argv[1].encode())
            except BlockingIOError:
                pass
"""


@needs_root
@pytest.mark.parametrize("start_method", ["fork"])
def test_notes_of_another_user_are_discarded(waiting_job: Running, tmp_path: Path) -> None:
    """Messages from another user to the socket of notes are discarded; those of the job's own user are shown."""
    address = note_box(waiting_job)
    words = [harness.MPRUN_PYTHON, "-c", SEND, address[1:].decode()]
    subprocess.run(words, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", check=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
        own.sendto(b"libgomp\nTHE EARTH HOLDS", address)
    run = let_go(waiting_job, tmp_path)
    assert "THE EARTH HOLDS" in run.stderr
    assert "THE SKY FALLS" not in run.stderr


REACH = """
import os, sys
def refused(what, *arguments):
    try:
        what(*arguments)
    except (PermissionError, ProcessLookupError):
        return True
    return False
run_dir, *pids = sys.argv[1:]
assert refused(os.listdir, run_dir)
assert refused(open, run_dir + "/results.jsonl")
for pid in pids:
    assert refused(os.listdir, f"/proc/{pid}/fd")
    assert refused(os.kill, int(pid), 0)
    assert refused(open, f"/proc/{pid}/environ", "rb") or not open(f"/proc/{pid}/environ", "rb").read()
"""


@needs_root
@pytest.mark.parametrize("start_method", ["fork"])
def test_another_user_reaches_nothing(waiting_job: Running, tmp_path: Path) -> None:
    """Neither records, nor descriptors (which lead to shared memory), nor processes."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    assert stat.S_IMODE(waiting_job.run_dir.stat().st_mode) == 0o700
    pids = [str(waiting_job.pid), *(str(process.pid) for process in waiting_job.children())]
    words = [harness.MPRUN_PYTHON, "-c", REACH, str(waiting_job.run_dir), *pids]
    subprocess.run(words, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", check=True)
    let_go(waiting_job, tmp_path)


def test_a_run_directory_is_private(run_job: RunCommand, tmp_path: Path, start_method: str) -> None:
    """Also where the user's umask is 0."""
    spec = {"command": ["true"], "inputs": {"range": 1}}
    if start_method != "fork":
        spec = {"script": "job.py:run", "inputs": {"range": 1}, "start_method": start_method}
    run = run_job(
        spec, scripts={"job.py": "def run(number):\n    return number\n"}, preexec_fn=lambda: os.umask(0) and None
    ).check()
    assert stat.S_IMODE(run.run_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE((run.run_dir / "logs").stat().st_mode) == 0o700


# --- a hostile directory -------------------------------------------------------------------------

TRAP = "import os\nos.close(os.open({mark!r}, os.O_CREAT))\nraise SystemExit('trapped')\n"
MODULES = (
    "sitecustomize usercustomize mprun _mprun mprun_fork json os re struct signal numpy torch pickle importlib "
    "multiprocessing libgomp torch_adapter opencv_adapter"
).split()
CONFIGS = ("mprun.json", ".mprun.json", "config.json", ".mprun/config.json", ".config/mprun/config.json", "mprun/config.json")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A directory in which everything is a trap."""
    folder = tmp_path / "hostile"
    mark = str(tmp_path / "trapped")
    (folder / "adapters").mkdir(parents=True)
    for name in MODULES:
        (folder / f"{name}.py").write_text(TRAP.format(mark=mark))
    for name in ("python3", "python", "sh", "true", "mprun", "setup"):
        (folder / name).write_text(f"#!/bin/sh\n: > {mark}\n")
        (folder / name).chmod(0o755)
    for name in CONFIGS:
        (folder / name).parent.mkdir(exist_ok=True, parents=True) if not (folder / name).parent.is_file() else None
        if (folder / name).parent.is_dir():
            (folder / name).write_text(json.dumps({"python": "./python3", "env": {"LD_PRELOAD": "./trap.so"}}))
    for name in ("libmprun_preload.so", "libgomp.so.1", "libstdc++.so.6", "pyvenv.cfg", ".env"):
        (folder / name).write_text("trap")
    return folder


# PATH is searched once, whatever the start method.
@pytest.mark.parametrize(
    ("start_method", "path"),
    [*((method, "plain") for method in harness.START_METHODS), *(("fork", path) for path in (":{}", "{}:", "/nowhere::{}"))],
)
def test_a_hostile_directory_executes_nothing(
    run_job: RunCommand, hostile: Path, tmp_path: Path, start_method: str, path: str
) -> None:
    """An empty entry of PATH, or an empty PYTHONPATH, does not mean it either."""
    script = "import json\n\n\ndef run(number):\n    return json.loads(str(number))\n"
    env = {"PYTHONPATH": ""}
    spec = {"script": "job.py:run", "start_method": start_method, "inputs": {"range": 3}}
    if path != "plain":
        env["PATH"] = path.format(os.environ["PATH"])
        spec["python"] = "python3"
    run = run_job(spec, scripts={"job.py": script}, cwd=hostile, env=env).check()
    assert run.values() == [0, 1, 2]
    assert not (tmp_path / "trapped").exists()


@pytest.mark.parametrize("path", ["plain", ":{}", "{}:"])
def test_a_hostile_directory_executes_nothing_for_programs(
    run_mprun: RunCommand, run_job: RunCommand, hostile: Path, tmp_path: Path, path: str
) -> None:
    env = {"PATH": path.format(os.environ["PATH"])} if path != "plain" else {}
    run_mprun("--", "true", cwd=hostile, env=env).check()
    run_job({"command": ["true"], "inputs": {"range": 2}}, cwd=hostile, env=env).check()
    run_mprun("doctor", cwd=hostile, env=env)
    assert not (tmp_path / "trapped").exists()


def test_a_planted_link_is_not_followed(run_job: RunCommand, tmp_path: Path) -> None:
    """Names next to a run directory may belong to any user, too."""
    victim = tmp_path / "victim"
    victim.write_text("years of work")
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "latest").symlink_to(victim)
    (beside / ".latest-run").symlink_to(victim)
    run_job({"command": ["true"], "inputs": {"range": 2}}, "--output", beside / "run").check()
    assert victim.read_text() == "years of work"
    assert not victim.is_symlink()


def test_a_planted_run_directory_is_refused(run_job: RunCommand, tmp_path: Path) -> None:
    """A link in the place of one of mprun's files makes it refuse the directory."""
    victim = tmp_path / "victim"
    victim.write_text("years of work")
    planted = tmp_path / "planted"
    planted.mkdir()
    for name in ("results.jsonl", "job.json.tmp", "joblog.tsv", "logs"):
        (planted / name).symlink_to(victim)
    run = run_job({"command": ["true"], "inputs": {"range": 2}}, "--output", planted).check(2)
    assert "not empty" in run.stderr
    assert victim.read_text() == "years of work"


# --- secrets -------------------------------------------------------------------------------------

SECRETS = {"API_TOKEN": "tok-271828", "db_password": "pw-314159", "SSH_KEY": "key-161803", "MY_PIN": "pin-141421"}


def holds_secret(text: str, names: Any = SECRETS) -> list[str]:
    return [name for name in names if SECRETS[name] in text]


def all_text(run: harness.Run) -> str:
    files = [path.read_text(errors="replace") for path in run.run_dir.rglob("*") if path.is_file()]
    return "\n".join([run.stdout, run.stderr, *files])


def test_secrets_stay_with_the_workers(run_job: RunCommand, start_method: str) -> None:
    """The workers get them; the run directory, --explain, a hang's report and messages do not."""
    script = f"""
import os
import threading

SECRETS = {SECRETS!r}


def run(number):
    assert {{name: os.environ[name] for name in SECRETS}} == SECRETS
    if number == 1:
        raise ValueError("no")
    if number == 2:
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    return number
"""
    spec = {
        "script": "job.py:run",
        "start_method": start_method,
        "inputs": {"range": 3},
        "env": SECRETS,
        "redact": ["*token*", "DB_*", "*KEY", "*_PIN"],
        "retries": 0,
    }
    run = run_job(spec, "--explain", "--summary-json", scripts={"job.py": script}).check(1)
    assert run.hangs(), run
    (run.run_dir.parent / "job.py").unlink()
    assert holds_secret(all_text(run)) == []
    kept = json.loads((run.run_dir / "job.json").read_text())
    assert kept["env"] == dict.fromkeys(SECRETS, "***")


def test_usual_names_are_secrets_unasked(run_job: RunCommand) -> None:
    """Secrets in mprun's own environment are not written at all."""
    own = {"OWN_SECRET": "own-173205"}
    spec = {"command": ["true"], "inputs": {"range": 1}, "env": SECRETS}
    run = run_job(spec, "--explain", env=own).check()
    text = all_text(run)
    assert holds_secret(text) == ["MY_PIN"]
    assert own["OWN_SECRET"] not in text


def test_what_was_not_kept_comes_from_the_environment(run_job: RunCommand, tmp_path: Path) -> None:
    """A job.json that mprun has written is a valid spec again, given the secrets."""
    script = "import os\n\n\ndef run(number):\n    return os.environ['API_TOKEN']\n"
    spec = {"script": "job.py:run", "inputs": {"range": 1}, "env": {"API_TOKEN": "one"}}
    first = run_job(spec, scripts={"job.py": script}).check()
    kept = json.loads((first.run_dir / "job.json").read_text())
    kept.pop("output", None)
    (tmp_path / "again.json").write_text(json.dumps(kept))
    again = run_job(tmp_path / "again.json", env={"API_TOKEN": "two"}).check()
    assert (first.values(), again.values()) == (["one"], ["two"])
    refused = run_job(tmp_path / "again.json").check(2)
    assert re.search(r"/env/API_TOKEN: .*set API_TOKEN in the environment", refused.stderr)


@pytest.mark.parametrize("option", ['env.API_TOKEN="{}"', "env.API_TOKEN={}", 'env={{"API_TOKEN": ["{}"]}}'])
def test_messages_about_options_disclose_no_secret(run_job: RunCommand, option: str) -> None:
    spec = {"command": ["true"], "inputs": {"range": 1}, "processes": "no"}
    run = run_job(spec, "--set", option.format(SECRETS["API_TOKEN"])).check(2)
    assert holds_secret(run.stdout + run.stderr) == []
