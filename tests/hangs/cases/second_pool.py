"""A pool whose result cannot be unpickled, after another one, whose workers its terminate() has ended."""

import multiprocessing


class TaskError(Exception):
    """Pickles with one argument, cannot be made again from it."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(f"{text} ({code})")


def task() -> None:
    raise TaskError("no such file", 2)


def main() -> None:
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as first:
        first.map(abs, range(9))
    second = context.Pool(2)
    second.apply_async(task)
    second.close()
    second.join()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
