"""A process has got a task and ended without task_done(), so that the queue's join() waits forever."""

import multiprocessing

context = multiprocessing.get_context("fork")


def get(queue) -> None:
    queue.get()


if __name__ == "__main__":
    queue = context.JoinableQueue()
    process = context.Process(target=get, args=(queue,))
    process.start()
    queue.put(1)
    process.join()
    queue.join()  # hangs here
    print("done", flush=True)
