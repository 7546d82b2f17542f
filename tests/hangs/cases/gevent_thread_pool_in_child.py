"""A thread pool of gevent is used before fork, and in the child (gevent#154)."""

import multiprocessing

from gevent.threadpool import ThreadPool

pool = ThreadPool(1)


def work() -> None:
    pool.apply(len, ("in the child",))


if __name__ == "__main__":
    pool.apply(len, ("in the parent",))
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()  # hangs here
    print("done")
