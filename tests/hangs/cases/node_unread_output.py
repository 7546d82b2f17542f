"""Node.js writes more than the pipe holds, and its parent waits for its end (subprocess.Popen.wait)."""

import subprocess

if __name__ == "__main__":
    child = subprocess.Popen(
        ["node", "-e", "process.stdout.write('x'.repeat(10_000_000))"], stdout=subprocess.PIPE
    )
    child.wait()  # hangs here
    print("done")
