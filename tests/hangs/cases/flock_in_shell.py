"""A shell locks a file for the time it runs, and starts a program that locks it, too. The lock that flock(1) took is
the shell's, which has the file open.
"""

import os
import subprocess
import tempfile

SCRIPT = """
exec 9>"$1"
flock 9
flock "$1" true
"""

if __name__ == "__main__":
    lock = os.path.join(tempfile.mkdtemp(), "lock")
    shell = subprocess.Popen(["sh", "-c", SCRIPT, "sh", lock])
    shell.wait()  # hangs here
    print("done", flush=True)
