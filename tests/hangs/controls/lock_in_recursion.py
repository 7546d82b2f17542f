"""A function that has called itself waits for a lock that another thread holds for some seconds.

Arguments: seconds, and "gevent": the same in a greenlet.
"""

import sys
import threading
import time

lock = threading.Lock()
quiet = float(sys.argv[1])


def hold():
    with lock:
        time.sleep(quiet)


def descend(depth):
    if depth > 0:
        descend(depth - 1)
        return
    with lock:
        pass


holder = threading.Thread(target=hold)
holder.start()
while not lock.locked():
    time.sleep(0.01)
if "gevent" in sys.argv:
    import gevent

    gevent.joinall([gevent.spawn(descend, 2)])
else:
    descend(2)
holder.join()
print("done")
