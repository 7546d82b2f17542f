"""A synchronous function asks an event loop for a result by run_coroutine_threadsafe(), in the loop's own thread."""

import asyncio


async def fetch() -> int:
    return 1


def fetch_now(loop: asyncio.AbstractEventLoop) -> int:
    return asyncio.run_coroutine_threadsafe(fetch(), loop).result()  # hangs here


async def main() -> None:
    fetch_now(asyncio.get_running_loop())


asyncio.run(main())
print("done")
