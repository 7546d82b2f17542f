"""The C library's own fork(), as a C extension calls it, with the GIL released (CDLL) or held (PyDLL),
while other threads want the GIL all the time. Only mprun notifies the interpreter of such a fork.
"""

import ctypes
import os
import sys
import threading

import after_fork

if __name__ == "__main__":
    library = getattr(ctypes, sys.argv[1])(None)
    after_fork.warm_up()
    after_fork.start_busy_threads()
    for _ in range(10):
        child = library.fork()
        assert child >= 0
        if child == 0:
            alone = threading.active_count() == 1  # threading knows that the other threads do not exist here
            os._exit(0 if alone and after_fork.works() else 1)
        after_fork.wait_for(child)
    after_fork.report()
