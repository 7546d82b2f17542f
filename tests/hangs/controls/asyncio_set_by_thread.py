"""A thread sets an event of asyncio after some seconds, by call_soon_threadsafe() or while other things wake the loop.

Arguments: seconds, and how.
"""

import asyncio
import sys
import threading

seconds = float(sys.argv[1])


async def main() -> None:
    ready = asyncio.Event()
    if "safely" in sys.argv:
        call = asyncio.get_running_loop().call_soon_threadsafe
        threading.Timer(seconds, call, [ready.set]).start()
        await ready.wait()
        return
    threading.Timer(0.2, ready.set).start()
    sleeps = asyncio.create_task(asyncio.sleep(seconds))  # wakes the loop
    await ready.wait()
    await sleeps


asyncio.run(main())
print("done")
