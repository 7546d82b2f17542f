"""Asks a queue twice a second, into which a process puts late, or a handler of SIGTERM."""

import multiprocessing
import os
import queue
import signal
import sys
import time

context = multiprocessing.get_context("fork")
items = context.Queue()
if sys.argv[-1] == "until":
    signal.signal(signal.SIGTERM, lambda *_: items.put("stop"))
    print("ready", os.getpid(), flush=True)
else:
    context.Process(target=lambda: (time.sleep(float(sys.argv[1])), items.put("late"))).start()
while True:
    try:
        items.get(timeout=0.5)
    except queue.Empty:
        continue
    break
print("done")
