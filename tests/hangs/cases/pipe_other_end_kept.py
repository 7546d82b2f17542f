"""A parent keeps the child's end of a Pipe open, so that it does not learn that the child has ended."""

import multiprocessing


def work(end) -> None:
    del end  # it sends nothing


if __name__ == "__main__":
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=work, args=(theirs,))
    child.start()
    print(ours.recv())  # hangs here
    print("done")
