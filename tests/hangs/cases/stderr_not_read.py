"""A child fills the pipe of its errors, while its parent reads its output to the end."""

import subprocess

COMMAND = "head -c 1000000 /dev/zero >&2; echo output"

if __name__ == "__main__":
    child = subprocess.Popen(["sh", "-c", COMMAND], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout and child.stderr
    print(child.stdout.read())  # hangs here
    print("done", child.stderr.read())
