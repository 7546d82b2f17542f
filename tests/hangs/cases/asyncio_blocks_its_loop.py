"""A coroutine gets from a queue of threads, into which another coroutine of the same loop would put an item."""

import asyncio
import queue
import signal

items: queue.Queue[int] = queue.Queue()


async def put() -> None:
    await asyncio.sleep(0)
    items.put(1)


async def main() -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, items.put, 0)
    putting = asyncio.create_task(put())
    print(items.get())  # hangs here
    await putting


asyncio.run(main())
