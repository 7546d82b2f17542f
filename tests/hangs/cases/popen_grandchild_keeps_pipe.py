"""Popen.communicate waits for the end of a pipe that a grandchild has inherited (plumbum#840, cpython#82388);
the grandchild waits for its input to end, which the parent keeps open.
"""

import os
import subprocess

if __name__ == "__main__":
    source, sink = os.pipe()
    process = subprocess.Popen(
        ["sh", "-c", "cat <&%d & echo started" % source], stdout=subprocess.PIPE, pass_fds=[source]
    )
    os.close(source)
    process.communicate()  # hangs here
    os.close(sink)
    print("done", flush=True)
