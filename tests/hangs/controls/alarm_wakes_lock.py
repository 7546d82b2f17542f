"""Main waits for a lock that only the handler of its interval timer releases."""

import signal
import sys
import threading

lock = threading.Lock()

if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    signal.signal(signal.SIGALRM, lambda _number, _frame: lock.release())
    lock.acquire()
    signal.setitimer(signal.ITIMER_REAL, seconds)
    lock.acquire()
    print("done", flush=True)
