"""Case 8: a child is joined before what it put on the queue was taken (cpython#73983)."""

import multiprocessing


def produce(results: multiprocessing.Queue) -> None:
    results.put(b"x" * 1_000_000)


def main() -> None:
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=produce, args=(results,))
    process.start()
    process.join()  # hangs here
    print("done", len(results.get()), flush=True)


if __name__ == "__main__":
    main()
