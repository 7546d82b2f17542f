"""A child that is stopped, and that another continues after some seconds."""

import os
import signal
import subprocess
import sys

stopped = subprocess.Popen([sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"])
os.waitpid(stopped.pid, os.WUNTRACED)
subprocess.Popen(["sh", "-c", f"sleep {sys.argv[1]}; kill -{signal.SIGCONT.value} {stopped.pid}"])
stopped.wait()
print("done")
