"""The first callback of a Pool that is joined takes some seconds, while results wait for the thread that runs it; last
argument: what it waits for."""

import multiprocessing
import queue
import signal
import sys
import threading
import time

SECONDS, WAY = float(sys.argv[1]), sys.argv[2]
lock = threading.Lock()
room: "queue.Queue[int]" = queue.Queue(maxsize=1)
event = threading.Event()
finished = multiprocessing.get_context("fork").Event()
taken = 0


def work(number: int) -> int:
    if number == 3 and WAY == "worker":
        time.sleep(SECONDS)
        finished.set()
    return number


def hold_lock() -> None:
    with lock:
        event.set()
        time.sleep(SECONDS)


def take_all() -> None:
    time.sleep(SECONDS)
    while True:
        room.get()


def callback(number: int) -> None:
    global taken
    if WAY == "sleep" and number == 0:
        time.sleep(SECONDS)
    elif WAY == "lock":
        with lock:
            pass
    elif WAY == "queue":
        room.put(number)
    elif WAY == "alarm":
        event.wait()
    elif WAY == "worker" and number != 3:
        finished.wait()
    taken += 1


if __name__ == "__main__":
    if WAY == "lock":
        threading.Thread(target=hold_lock).start()
        event.wait()
    if WAY == "queue":
        threading.Thread(target=take_all, daemon=True).start()
    if WAY == "alarm":
        signal.signal(signal.SIGALRM, lambda *_: event.set())
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
    pool = multiprocessing.get_context("fork").Pool(2)
    for number in range(10):
        pool.apply_async(work, (number,), callback=callback)
    pool.close()
    pool.join()
    assert taken == 10
    print("done", flush=True)
