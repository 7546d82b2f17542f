"""Idle until SIGINT, which a handler of its own answers; last argument: how it waits, or who installs the handler."""

import asyncio
import ctypes
import os
import signal
import sys
import threading
import time

stopped = threading.Event()


def wait_for_flag() -> None:
    while not stopped.is_set():
        time.sleep(0.2)


async def serve() -> None:
    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, end.set)
    print("ready", os.getpid(), flush=True)
    await end.wait()


if __name__ == "__main__":
    how = sys.argv[-1]
    if how == "asyncio":
        asyncio.run(serve())
    else:
        stop = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda _number: stopped.set())
        if how == "library":
            ctypes.CDLL(None).signal(signal.SIGINT, stop)
        else:
            signal.signal(signal.SIGINT, lambda _number, _frame: stopped.set())
        print("ready", os.getpid(), flush=True)
        if how == "polls":
            wait_for_flag()
        elif how == "library":
            stopped.wait()
        else:
            worker = threading.Thread(target=stopped.wait)
            worker.start()
            worker.join()
    print("done", flush=True)
