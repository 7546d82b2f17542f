"""Under the fork server, the default since Python 3.14: a child that is terminated ignores it."""

import multiprocessing
import signal
import time
from multiprocessing.connection import Connection


def work(ready: Connection) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ready.send(True)
    while True:
        time.sleep(1)


def main() -> None:
    context = multiprocessing.get_context("forkserver")
    is_ready, ready = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(ready,))
    process.start()
    is_ready.recv()
    process.terminate()
    process.join()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
