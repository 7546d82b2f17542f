"""Two processes lock two files in opposite order (open-build-service#1606); the kernel looks for such a cycle
with fcntl() only.
"""

import fcntl
import multiprocessing
import tempfile
from multiprocessing.synchronize import Barrier


def lock_both(first: str, second: str, both_hold_one: Barrier) -> None:
    with open(first) as one, open(second) as other:
        fcntl.flock(one, fcntl.LOCK_EX)
        both_hold_one.wait()
        fcntl.flock(other, fcntl.LOCK_EX)  # blocks here


def main() -> None:
    context = multiprocessing.get_context("fork")
    both_hold_one = context.Barrier(2)
    with tempfile.NamedTemporaryFile() as one, tempfile.NamedTemporaryFile() as other:
        orders = [(one.name, other.name), (other.name, one.name)]
        processes = [context.Process(target=lock_both, args=(*o, both_hold_one)) for o in orders]
        for process in processes:
            process.start()
        for process in processes:
            process.join()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
