"""A thread is waited for by the holder of a lock that it needs."""

import threading

lock = threading.Lock()


def write_down() -> None:
    with lock:  # blocks here
        print("written")


if __name__ == "__main__":
    with lock:
        thread = threading.Thread(target=write_down)
        thread.start()
        thread.join()  # hangs here
