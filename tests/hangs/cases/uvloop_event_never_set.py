"""A program on uvloop waits for an event that nothing sets."""

import asyncio

import uvloop


async def main() -> None:
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.install()
    asyncio.run(main())  # hangs here
    print("done")
