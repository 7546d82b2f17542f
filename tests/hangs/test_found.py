"""mprun finds every case of the corpus, names it, and ends it whole."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import corpus
import found
import harness
from compiled import CASES, why_not_installed
from corpus import Case
from harness import MPRUN_PYTHON, RunCommand, Runner


@corpus.each_case
def test_is_found(runner: Runner, tmp_path: Path, case: Case) -> None:
    """With verdict, cause, join and line; nothing of the tree is left."""
    outcome = found.finish(case, *found.start(runner, case, tmp_path))
    wrong = list(found.complaints(outcome))
    assert not wrong, f"{wrong}\n{outcome.run}\n{outcome.report}"


WORKS_FIRST = """
import multiprocessing, threading, time

def work():
    end = time.monotonic() + 2
    while time.monotonic() < end:
        pass
    threading.Event().wait()

child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.join()
"""


def test_the_join_has_waited_for_longer_than_all_have_rested(
    run_mprun: RunCommand, tmp_path: Path
) -> None:
    (tmp_path / "works.py").write_text(WORKS_FIRST, encoding="utf-8")
    options = ["--on-hang", "kill", "--hang-report", "hang.json"]
    run_mprun(*options, "--", MPRUN_PYTHON, "works.py").check(124)
    report = json.loads((tmp_path / "hang.json").read_text(encoding="utf-8"))
    waited, rested = report["join"]["waiting_seconds"], report["seconds_since_progress"]
    assert waited > rested + 1.5, report


RECEIVES_FROM_ITSELF = """
from mpi4py import MPI

MPI.COMM_WORLD.recv(source=0)
"""


def test_a_spinning_process_is_named_on_a_crowded_cpu(run_mprun: RunCommand, tmp_path: Path) -> None:
    """On a CPU that gives it as little time as programs need that only poll."""
    (tmp_path / "program.py").write_text(RECEIVES_FROM_ITSELF, encoding="utf-8")
    pinned = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))]
    neighbours = [subprocess.Popen([*pinned, "sh", "-c", "while :; do :; done"]) for _ in range(6)]
    try:
        options = ["--on-hang", "kill", "--hang-report", "hang.json", "--stall-seconds", "3"]
        environment = harness.library_settings(tmp_path)
        run_mprun(*options, "--", *pinned, MPRUN_PYTHON, "program.py", env=environment).check(124)
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()
    report = json.loads((tmp_path / "hang.json").read_text(encoding="utf-8"))
    assert report["cause"]["id"] == "message-never-sent", report


@pytest.mark.skipif(why_not_installed(".java") != "", reason=why_not_installed(".java"))
def test_a_deadlock_in_java_is_reported_soon(runner: Runner) -> None:
    """Although the helper threads of its virtual machine never rest."""
    running = runner.start("--on-hang", "kill", "--", "java", CASES / "java_monitor_cycle.java", output=False)
    harness.wait_until(lambda: "cure:" in running.stderr, timeout=60, what="the report")
    assert "(lock-cycle)" in running.stderr
    assert running.stderr.count("mprun: stalled: ") == 1
    running.stop()


def test_a_lost_task_is_reported_soon_beside_a_thread(runner: Runner) -> None:
    """Within seconds, not after the five minutes of a stall, and once."""
    program = CASES / "pool_worker_killed_beside_thread.py"
    running = runner.start("--on-hang", "kill", "--", MPRUN_PYTHON, program, output=False)
    harness.wait_until(lambda: "cure:" in running.stderr, timeout=60, what="the report")
    assert "(worker-died)" in running.stderr
    said = running.stdout.count("all is well")
    harness.wait_until(lambda: running.stdout.count("all is well") > said + 25, timeout=60, what="another five seconds")
    assert running.stderr.count("mprun: stalled: ") == 1
    running.stop()


SERVES_ITSELF = """
import socket, socketserver, threading

class Server(socketserver.BaseServer):
    ends = socket.socketpair()

    def fileno(self):
        return self.ends[0].fileno()

server = Server(None, None)
threading.Thread(target=server.serve_forever, args=(0.65,), daemon=True).start()
lock = threading.Lock()
with lock:
    lock.acquire()
"""


def test_a_poll_that_moves_at_once_is_reported_once(runner: Runner, tmp_path: Path) -> None:
    """Python optimises a loop after eight rounds, and it waits elsewhere from then on."""
    (tmp_path / "program.py").write_text(SERVES_ITSELF, encoding="utf-8")
    running = runner.start("--on-hang", "report", "--", MPRUN_PYTHON, tmp_path / "program.py", output=False)
    harness.wait_until(lambda: "cure:" in running.stderr, timeout=60, what="the report")
    pid = re.search(r"^  pid (\d+): ", running.stderr, re.MULTILINE)
    assert pid, running.stderr
    first = runs_of_threads(pid[1])
    harness.wait_until(
        lambda: any(runs > first[tid] + 20 for tid, runs in runs_of_threads(pid[1]).items()),
        timeout=60,
        what="another twenty rounds",
    )
    assert running.stderr.count("mprun: stalled: ") == 1
    running.stop()


def runs_of_threads(pid: str) -> dict[str, int]:
    """How often each thread of the process has run."""
    files = Path("/proc", pid, "task").glob("*/schedstat")
    return {file.parent.name: int(file.read_text(encoding="ascii").split()[2]) for file in files}


PRINTS_AND_WAITS = """
import multiprocessing

context = multiprocessing.get_context("fork")
lock = context.Lock()
child = context.Process(target=lambda: (lock.acquire(), lock.acquire()))
child.start()
while child.is_alive():
    child.join(1)
    print("it has not ended yet", flush=True)
"""


@pytest.mark.skipif(not corpus.READS_LOOPS, reason=corpus.NO_LOOPS)
def test_a_loop_that_prints_is_ended_with_a_short_limit(run_mprun: RunCommand, tmp_path: Path) -> None:
    """Each line is movement, so nothing stands still for as long as the limit asks for."""
    (tmp_path / "program.py").write_text(PRINTS_AND_WAITS, encoding="utf-8")
    run = run_mprun("--on-hang", "kill", "--stall-seconds", "3", "--", MPRUN_PYTHON, "program.py").check(124)
    assert "(lock-cycle)" in run.stderr


SOON = {
    "zmq_message_unsent.py": "no-waker",
    "ruby_popen_reads_first.rb": "pipe-cycle",
    "pool_initializer_raises.py": "respawn-loop",
    "poll_before_read.py": "queue-not-drained",
    "queue_polled_without_producer.py": "pipe-never-closed",
    "alive_before_get.py": "queue-not-drained",
    "heartbeat_beside_lock_cycle.py": "lock-cycle",
    "elapsed_shown_until_child_ends.py": "queue-not-drained",
    "xargs_reads_fifo.sh": "input-never-closed",
    "go_pipe_not_read.go": "queue-not-drained",
    "go_channel_without_reader.go": "no-waker",
}


# Killed at the end of the test, a forkserver's program would leave its semaphores.
SUSPECTED = [
    case
    for case in corpus.HERE
    if case.program in SOON and "stalled" in case.verdicts and case.start_method != "forkserver"
]


@pytest.mark.parametrize("case", SUSPECTED, ids=lambda case: case.name)
def test_what_cannot_be_idle_is_reported_soon(runner: Runner, tmp_path: Path, case: Case) -> None:
    """Within seconds, not after the five minutes of a stall."""
    if case.program == "queue_polled_without_producer.py" and not corpus.READS_LOOPS:
        pytest.skip(corpus.NO_LOOPS)
    running = runner.start("--on-hang", "kill", "--", *case.argv(tmp_path), output=False)
    harness.wait_until(lambda: "cure:" in running.stderr, timeout=30, what="the report")
    assert "mprun: stalled: " in running.stderr
    assert f"({SOON[case.program]})" in running.stderr
    assert running.process.poll() is None
    running.stop()
