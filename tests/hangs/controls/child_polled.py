"""A parent sleeps and looks whether its child has ended; the child takes its time, or is read after many looks."""

import subprocess
import sys
import time

seconds, way = float(sys.argv[1]), sys.argv[2]
write = "import sys; sys.stdout.write('x' * 1_000_000)"
program = f"import time; time.sleep({seconds})" if way == "slow" else write
child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
looks = 0
while child.poll() is None:
    time.sleep(0.1)
    looks += 1
    if looks == 10 * seconds:
        child.communicate()
print("done")
