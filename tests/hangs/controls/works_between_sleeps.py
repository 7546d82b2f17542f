"""Works for a moment and sleeps for long, again and again, at one place of its code."""

import sys
import time

seconds = float(sys.argv[1])
pause = 0.6
if sys.argv[2] == "prints":
    begin = time.monotonic()
    while time.monotonic() < begin + seconds:
        time.sleep(pause)
        print("works", flush=True)
else:
    for turn in range(int(seconds / pause)):
        time.sleep(pause)
print("done", flush=True)
