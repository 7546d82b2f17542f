"""Case 7: a result that cannot be unpickled ends the Pool's result thread (cpython#79492)."""

import multiprocessing


class TaskError(Exception):
    """Pickles with one argument, cannot be made again from it."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(f"{text} ({code})")


def task() -> None:
    raise TaskError("no such file", 2)


def main() -> None:
    pool = multiprocessing.get_context("fork").Pool(2)
    pool.apply_async(task)
    pool.close()
    pool.join()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
