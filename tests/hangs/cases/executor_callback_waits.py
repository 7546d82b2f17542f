"""The callback of a future waits for another task of its executor, whose results its own thread would take."""

import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor

called = threading.Event()


def double(number: int) -> int:
    time.sleep(0.2)  # until the callback is there
    return 2 * number


if __name__ == "__main__":
    executor = ProcessPoolExecutor(1)

    def once_more(future: "Future[int]") -> None:
        more = executor.submit(double, future.result())
        called.set()
        print(more.result())  # blocks here

    executor.submit(double, 1).add_done_callback(once_more)
    called.wait()
    executor.shutdown()  # hangs here
    print("done")
