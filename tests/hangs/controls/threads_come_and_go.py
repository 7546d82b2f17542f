"""A thread starts the next one and ends, all the time; main waits for the last of them."""

import sys
import threading
import time

ended = threading.Event()
end = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else 20)


def relay() -> None:
    time.sleep(0.02)
    if time.monotonic() > end:
        ended.set()
    else:
        threading.Thread(target=relay).start()


if __name__ == "__main__":
    threading.Thread(target=relay).start()
    ended.wait()
    print("done", flush=True)
