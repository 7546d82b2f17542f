"""Popen.communicate with a program that is slow to answer."""

import subprocess
import sys

if __name__ == "__main__":
    seconds = sys.argv[1] if len(sys.argv) > 1 else "30"
    command = ["sh", "-c", 'read line; sleep "$1"; echo "$line"', "sh", seconds]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.communicate(b"done\n")[0] == b"done\n"
    print("done", flush=True)
