"""The holder of a lock joins a thread that needs the lock."""

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
