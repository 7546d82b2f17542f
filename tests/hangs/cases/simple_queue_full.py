"""Workers put more into a SimpleQueue than its pipe holds, and are joined before anything is read."""

import multiprocessing


def work(results: multiprocessing.SimpleQueue) -> None:
    results.put(b"x" * 200_000)  # blocks here


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    workers = [context.Process(target=work, args=(results,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()  # hangs here
    print("done")
