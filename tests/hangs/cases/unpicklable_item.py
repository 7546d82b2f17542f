"""What a child puts into a queue cannot be pickled: its feeder thread drops it, and the parent waits."""

import multiprocessing


def work(results) -> None:
    results.put(lambda: 1)


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=work, args=(results,))
    child.start()
    print(results.get())  # hangs here
    child.join()
