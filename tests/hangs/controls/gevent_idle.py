"""Greenlets wait for an event that another one sets after a while."""

import sys

import gevent
from gevent.event import Event
from gevent.threadpool import ThreadPool

if __name__ == "__main__":
    event = Event()
    waiting = [gevent.spawn(event.wait) for _ in range(3)]
    ThreadPool(1).apply(len, ("",))
    gevent.spawn_later(float(sys.argv[1]), event.set)
    gevent.joinall(waiting)
    print("done")
