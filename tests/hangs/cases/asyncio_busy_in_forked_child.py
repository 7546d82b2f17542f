"""Case 16 with a loop that the parent goes on to use: only the child is dead (django/asgiref#194)."""

import asyncio
import multiprocessing
import threading

loop = asyncio.new_event_loop()


async def answer() -> int:
    return 42


async def beat() -> None:
    while True:
        await asyncio.sleep(0.1)


def ask() -> int:
    return asyncio.run_coroutine_threadsafe(answer(), loop).result()  # blocks here


def main() -> None:
    threading.Thread(target=loop.run_forever, daemon=True).start()
    assert ask() == 42
    asyncio.run_coroutine_threadsafe(beat(), loop)
    process = multiprocessing.get_context("fork").Process(target=ask)
    process.start()
    process.join()  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
