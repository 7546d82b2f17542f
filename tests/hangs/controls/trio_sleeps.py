"""A task of trio waits for an event, which another one sets when it has slept for some seconds."""

import sys

import trio


async def main() -> None:
    event = trio.Event()

    async def set_later() -> None:
        await trio.sleep(float(sys.argv[1]))
        event.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(set_later)
        await event.wait()


trio.run(main)
print("done")
