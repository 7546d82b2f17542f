"""Main waits by poll for the pidfd of a child that sleeps."""

import os
import select
import sys
import time

if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    child = os.fork()
    if child == 0:
        time.sleep(seconds)
        os._exit(0)
    poll = select.poll()
    poll.register(os.pidfd_open(child))
    assert len(poll.poll()) == 1
    assert os.waitpid(child, 0)[1] == 0
    print("done", flush=True)
