"""A process takes the lock of a Value and ends without a word; the next one waits for the lock."""

import multiprocessing


def count(value) -> None:
    value.get_lock().acquire()
    value.value += 1


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    value = context.Value("i", 0)
    for _ in range(2):
        process = context.Process(target=count, args=(value,))
        process.start()
        process.join()  # hangs here
    print("done")
