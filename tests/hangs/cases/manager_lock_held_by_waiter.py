"""A process holds a manager's lock while it waits for the end of one that needs it."""

import multiprocessing


def work(lock) -> None:
    with lock:  # blocks here
        pass


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    lock = context.Manager().Lock()
    worker = context.Process(target=work, args=(lock,))
    with lock:
        worker.start()
        worker.join()  # hangs here
    print("done")
