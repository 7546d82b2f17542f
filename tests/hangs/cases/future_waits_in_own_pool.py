"""A task waits for another one of the same pool, whose only thread it occupies (as in TileDB#1757)."""

from concurrent.futures import ThreadPoolExecutor

executor = ThreadPoolExecutor(max_workers=1)


def outer() -> int:
    return executor.submit(pow, 2, 10).result()  # blocks here


if __name__ == "__main__":
    executor.submit(outer).result()  # hangs here
    print("done", flush=True)
