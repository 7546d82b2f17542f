"""A task reads a channel of trio to its end, and another one has not closed its side."""

import trio


async def main() -> None:
    sender, receiver = trio.open_memory_channel(0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sender.clone().send, 1)
        async for _ in receiver:
            pass


trio.run(main)  # hangs here
print("done")
