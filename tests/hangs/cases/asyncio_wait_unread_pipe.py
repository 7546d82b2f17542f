"""asyncio waits for the end of a child whose output it does not read."""

import asyncio


async def main() -> None:
    command = "head -c 1000000 /dev/zero"
    child = await asyncio.create_subprocess_shell(command, stdout=asyncio.subprocess.PIPE)
    await child.wait()
    print("done")


if __name__ == "__main__":
    asyncio.run(main())  # hangs here
