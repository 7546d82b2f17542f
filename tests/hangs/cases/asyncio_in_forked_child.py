"""Case 16: the asyncio loop runs in a thread that does not exist in the forked child (django/asgiref#194)."""

import asyncio
import multiprocessing
import threading

loop = asyncio.new_event_loop()


async def answer() -> int:
    return 42


def ask() -> int:
    return asyncio.run_coroutine_threadsafe(answer(), loop).result()  # blocks here


def main() -> None:
    threading.Thread(target=loop.run_forever, daemon=True).start()
    assert ask() == 42
    process = multiprocessing.get_context("fork").Process(target=ask)
    process.start()
    process.join()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
