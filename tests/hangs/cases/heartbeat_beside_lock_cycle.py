"""Two threads take two locks in opposite order, while a third one logs now and then that the program is alive."""

import logging
import threading
import time

first, second = threading.Lock(), threading.Lock()
both_have_one = threading.Barrier(2)


class Heartbeat(threading.Thread):
    def __init__(self, interval: float) -> None:
        super().__init__(name="heartbeat", daemon=True)
        self.interval = interval
        self.running = True
        self.beats = 0
        self.began = time.time()

    def run(self) -> None:
        while self.running:
            self.beat()
            time.sleep(self.interval)

    def beat(self) -> None:
        self.beats += 1
        logging.warning("alive for %.0f s, %d threads", time.time() - self.began, threading.active_count())


def transfer(source: threading.Lock, target: threading.Lock) -> None:
    with source:
        both_have_one.wait()
        with target:  # hangs here
            pass


if __name__ == "__main__":
    Heartbeat(0.5).start()
    other = threading.Thread(target=transfer, args=(first, second))
    other.start()
    transfer(second, first)
    other.join()
    print("done")
