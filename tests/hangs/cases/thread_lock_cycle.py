"""Two threads take two locks of Python in opposite order."""

import threading

first, second = threading.Lock(), threading.Lock()
both_hold_one = threading.Barrier(2)


def move(mine: threading.Lock, other: threading.Lock) -> None:
    with mine:
        both_hold_one.wait()
        with other:  # blocks here
            pass


if __name__ == "__main__":
    threads = [
        threading.Thread(target=move, args=locks) for locks in ((first, second), (second, first))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()  # hangs here
