"""A child with an alarm executes a program with another environment, without any preloaded library."""

import os
import signal
import sys

if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.set_inheritable(sink, True)  # it would end with the input
        os.dup2(source, 0)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        os.execve("/bin/cat", ["cat"], {})
    status = os.waitpid(child, 0)[1]
    assert os.WTERMSIG(status) == signal.SIGALRM
    print("done", flush=True)
