"""A task takes a lock of asyncio twice."""

import asyncio


async def main() -> None:
    lock = asyncio.Lock()
    async with lock, lock:
        print("done")


if __name__ == "__main__":
    asyncio.run(main())  # hangs here
