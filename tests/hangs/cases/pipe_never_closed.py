"""Case 17: the reader waits for the end of a pipe whose write end it has inherited itself."""

import multiprocessing
import os


def read_all(source: int) -> None:
    while os.read(source, 4096):  # blocks here
        pass


def main() -> None:
    source, sink = os.pipe()
    process = multiprocessing.get_context("fork").Process(target=read_all, args=(source,))
    process.start()
    os.write(sink, b"all there is")
    os.close(sink)
    process.join()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
