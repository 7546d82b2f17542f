"""The function that Popen runs between fork and exec takes a lock that another thread held (cpython#82756)."""

import subprocess
import threading

lock = threading.Lock()
locked = threading.Event()


def hold() -> None:
    with lock:
        locked.set()
        threading.Event().wait()


def prepare() -> None:
    with lock:  # blocks here
        pass


if __name__ == "__main__":
    threading.Thread(target=hold, daemon=True).start()
    locked.wait()
    subprocess.run(["true"], preexec_fn=prepare)  # hangs here
    print("done", flush=True)
