"""A worker raises before it calls task_done(); the process that has put the tasks waits until all are done."""

import multiprocessing


def work(tasks: multiprocessing.JoinableQueue) -> None:
    tasks.get()
    raise ValueError("the first task")


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    tasks = context.JoinableQueue()
    worker = context.Process(target=work, args=(tasks,))
    worker.start()
    for number in range(2):
        tasks.put(number)
    tasks.join()  # hangs here
    print("done")
