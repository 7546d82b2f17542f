"""Case 22 without torch: the rank that is terminated ignores it (pytorch#41694)."""

import multiprocessing
import signal
import sys
import time
from multiprocessing.connection import Connection


def work(ready: Connection) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ready.send(True)
    while True:
        time.sleep(1)


def main() -> None:
    context = multiprocessing.get_context(sys.argv[1])
    is_ready, ready = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(ready,))
    process.start()
    is_ready.recv()
    process.terminate()
    process.join()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
