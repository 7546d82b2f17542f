"""Case 21: a Pool whose initializer raises: dead workers are replaced forever (cpython#87472)."""

import multiprocessing
import sys


def prepare() -> None:
    sys.stderr.close()  # thousands of tracebacks would be printed
    raise OSError("no such device")


def main() -> None:
    pool = multiprocessing.get_context(sys.argv[1]).Pool(2, initializer=prepare)
    # The size of chunks is given, or map() would divide by the number of workers, which may be 0.
    pool.map(abs, range(4), chunksize=1)  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
