"""A library handles a signal: readline, which pdb imports, SIGWINCH. Then a program is run and a lock taken twice."""

import readline  # noqa: F401
import subprocess
import threading

subprocess.run(["true"], check=True)  # by vfork: its child takes all handlers away
lock = threading.Lock()
with lock:
    lock.acquire()  # hangs here
