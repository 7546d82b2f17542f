"""A thread sets a future of asyncio without call_soon_threadsafe(), so that the event loop sleeps on."""

import asyncio
import threading


async def main() -> None:
    result = asyncio.get_running_loop().create_future()
    threading.Timer(0.3, result.set_result, [1]).start()
    print(await result)


asyncio.run(main())  # hangs here
