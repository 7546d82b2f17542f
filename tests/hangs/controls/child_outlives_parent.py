"""A child's child outlives it, and main waits for a byte of that orphan."""

import os
import sys
import time

if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            time.sleep(seconds)
            os.write(sink, b"alive")
        os._exit(0)
    os.close(sink)
    os.waitpid(child, 0)
    assert os.read(source, 5) == b"alive"
    print("done", flush=True)
