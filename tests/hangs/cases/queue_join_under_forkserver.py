"""A child of the fork server, the default since Python 3.14, is joined before what it put on the queue was taken."""

import multiprocessing


def produce(results: multiprocessing.Queue) -> None:
    results.put(b"x" * 1_000_000)


def main() -> None:
    context = multiprocessing.get_context("forkserver")
    results = context.Queue()
    process = context.Process(target=produce, args=(results,))
    process.start()
    process.join()  # hangs here
    print("done", len(results.get()), flush=True)


if __name__ == "__main__":
    main()
