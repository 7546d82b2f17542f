"""An executor of uvloop has a thread when its process forks; the child gives it work, and waits for it."""

import asyncio
import os

import uvloop


async def main() -> None:
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, len, "in the parent")
    pid = os.fork()
    if pid == 0:
        await loop.run_in_executor(None, len, "in the child")
        os._exit(0)
    os.waitpid(pid, 0)  # hangs here
    print("done")


if __name__ == "__main__":
    uvloop.install()
    asyncio.run(main())
