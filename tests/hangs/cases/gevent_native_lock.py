"""Without monkey.patch_all(), a greenlet waits in C for a lock that another greenlet of its thread holds."""

import threading

import gevent

lock = threading.Lock()


def holds_lock():
    with lock:
        gevent.sleep(0.1)


def needs_lock():
    with lock:  # hangs here
        pass


gevent.joinall([gevent.spawn(holds_lock), gevent.spawn(needs_lock)])
