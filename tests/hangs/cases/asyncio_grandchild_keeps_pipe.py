"""asyncio waits for the end of a child's output too (cpython#119710), which a grandchild keeps open."""

import asyncio
import os

PIPE = asyncio.subprocess.PIPE


async def main() -> None:
    source, sink = os.pipe()
    command = f"cat <&{source} & read line"
    child = await asyncio.create_subprocess_shell(command, stdin=PIPE, stdout=PIPE, pass_fds=[source])
    os.close(source)
    wait = asyncio.ensure_future(child.wait())
    await asyncio.sleep(0)  # it waits already when the child ends
    child.stdin.close()
    await wait
    os.close(sink)


asyncio.run(main())  # hangs here
print("done")
