"""A program waits for a lock that will never be freed, and handles SIGTERM: nothing is proved, since the handler could
free it; but mprun soon reports the likely cause. One that idles until SIGTERM looks the same, and is not reported."""

from __future__ import annotations

import signal

import harness
from compiled import CASES
from harness import Runner

IDLE = """
import signal, threading

stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
server = threading.Thread(target=stop.wait)
server.start()
print("ready", flush=True)
server.join()
print("stopped", flush=True)
"""

SELF_PIPE = """
import os, signal

read, write = os.pipe()
signal.signal(signal.SIGTERM, lambda *_: os.write(write, b"stop"))
print("ready", flush=True)
os.read(read, 1)
print("stopped", flush=True)
"""


def test_what_only_a_handler_could_release_is_reported_soon(runner: Runner) -> None:
    """Within seconds, though stalls are reported only after five minutes; and nothing is ended for it."""
    idle = [
        runner.start("--on-hang", "kill", "--", harness.MPRUN_PYTHON, "-c", program, output=False)
        for program in (IDLE, SELF_PIPE)
    ]
    harness.wait_until(lambda: all("ready" in one.stdout for one in idle), what="the idle programs")
    polite = runner.start("--on-hang", "kill", "--", harness.MPRUN_PYTHON, CASES / "polite_worker.py", output=False)
    harness.wait_until(lambda: "cure:" in polite.stderr, timeout=30, what="mprun to say what it sees")
    assert "stalled" in polite.stderr
    assert "proved (" not in polite.stderr
    assert "(lock-held-at-fork)" in polite.stderr
    assert "catches signal 15 (by python" in " ".join(polite.stderr.split())
    assert polite.process.poll() is None

    for one in idle:
        one.send_signal(signal.SIGTERM)
        run = one.wait(20).check()
        assert (run.stdout, run.stderr) == ("ready\nstopped\n", "")
    polite.stop()
