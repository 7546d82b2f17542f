"""asyncio waits for the end of a child's output too (cpython#119710), which a grandchild keeps open."""

import asyncio
import os


async def main() -> None:
    source, sink = os.pipe()
    command = f"cat <&{source} & echo started"
    child = await asyncio.create_subprocess_shell(command, stdout=asyncio.subprocess.PIPE, pass_fds=[source])
    os.close(source)
    await child.wait()
    os.close(sink)


asyncio.run(main())  # hangs here
print("done")
