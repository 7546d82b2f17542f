"""A function that runs at exit waits for a daemon thread, which waits for work."""

import atexit
import queue
import threading

work: queue.Queue = queue.Queue()
writer = threading.Thread(target=work.get, daemon=True)
writer.start()
atexit.register(writer.join)
print("ends now")
