"""A child limits its own time by alarm(), whose signal it does not catch, and waits; its parent joins it."""

import os
import signal
import sys

if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        os.read(source, 1)
        os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert os.WTERMSIG(status) == signal.SIGALRM
    print("done", flush=True)
