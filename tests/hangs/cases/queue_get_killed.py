"""Case 14: a consumer is killed inside Queue.get and takes the reader lock with it (as pytorch#21554 shows)."""

import multiprocessing
import os
import signal
import time


def consume(tasks: multiprocessing.Queue) -> None:
    tasks.get()


def main() -> None:
    context = multiprocessing.get_context("fork")
    tasks = context.Queue()
    process = context.Process(target=consume, args=(tasks,))
    process.start()
    while tasks._rlock.acquire(block=False):  # until the consumer has it
        tasks._rlock.release()
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    tasks.put("task")
    tasks.get()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
