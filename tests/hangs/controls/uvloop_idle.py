"""A loop of uvloop with nothing to do but to wait for a timer."""

import asyncio
import sys

import uvloop

if __name__ == "__main__":
    uvloop.install()
    asyncio.run(asyncio.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 30))
    print("done", flush=True)
