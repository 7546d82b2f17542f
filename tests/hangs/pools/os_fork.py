"""os.fork() itself, from the main thread and from another."""

import os
import threading

import after_fork


def fork_once() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0 if after_fork.works() else 1)
    after_fork.wait_for(child)


if __name__ == "__main__":
    after_fork.warm_up()
    fork_once()
    failures: list[object] = []
    threading.excepthook = failures.append
    thread = threading.Thread(target=fork_once)
    thread.start()
    thread.join()
    assert not failures
    after_fork.report()
