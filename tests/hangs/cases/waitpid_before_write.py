"""os.waitpid for a child that reads what its parent writes only afterwards."""

import os


def main() -> None:
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(sink)
        os.read(source, 1)  # blocks here
        os._exit(0)
    os.close(source)
    os.waitpid(child, 0)  # hangs here
    os.write(sink, b"x")
    print("done", flush=True)


if __name__ == "__main__":
    main()
