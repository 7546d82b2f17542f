"""Sleeps until a program has ended, and reads its output only then: a program that writes much does not end."""

import subprocess
import sys
import time

writer = subprocess.Popen([sys.executable, "-c", "print('x' * 1_000_000)"], stdout=subprocess.PIPE)
while writer.poll() is None:
    time.sleep(0.1)
print(len(writer.communicate()[0]))
print("done")
