"""Looks ten times a second whether tasks are done, one of which waits for another in its pool of one thread."""

import time
from concurrent.futures import ThreadPoolExecutor


class Job:
    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)
        self.futures = [self.pool.submit(self.run)]

    def run(self) -> int:
        return self.pool.submit(int).result()  # blocks here

    def wait(self) -> None:
        while not all(future.done() for future in self.futures):
            time.sleep(0.1)


Job().wait()
print("done")
