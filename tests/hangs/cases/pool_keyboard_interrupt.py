"""Case 6: a Pool's task raises KeyboardInterrupt, which ends its worker (bpo-8296, uqfoundation/pathos#114)."""

import multiprocessing


def task(_number: int) -> None:
    raise KeyboardInterrupt


def main() -> None:
    pool = multiprocessing.get_context("fork").Pool(2)
    pool.map(task, [1])  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
