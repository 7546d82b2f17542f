"""Main stops its child and continues it after a while."""

import multiprocessing
import os
import signal
import sys
import time

if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 4.5
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(0.1,))
    process.start()
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGCONT)
    process.join()
    assert process.exitcode == 0
    print("done", flush=True)
