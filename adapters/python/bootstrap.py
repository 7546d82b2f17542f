"""First file of every interpreter mprun starts: ``python bootstrap.py CHANNEL RESULTS BOARD``.

The numbers are inherited file descriptors. This file must parse under any Python, because its
first task is to report an interpreter that is too old. The rest is in the package next to it.
"""
import json
import os
import struct
import sys

OLDEST = (3, 11)
MAGIC, HELLO, START_FAILED = 0x6D72, 10, 13  # core/wire/protocol.h


def send(fd, kind, value):
    """Writes one frame without the extension, which an old interpreter could not load."""
    payload = json.dumps(value).encode("utf-8")
    os.write(fd, struct.pack("=IHH", len(payload), MAGIC, kind) + payload)


def refusal():
    """Why this interpreter cannot run a worker, or None."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < OLDEST:
        return "this is Python %s; mprun's workers need Python %d.%d or later" % ((version,) + OLDEST)
    if sys.implementation.name != "cpython":
        return "this is %s; mprun's workers need CPython" % sys.implementation.name
    return None


def main():
    channel, results, claims = (int(text) for text in sys.argv[1:4])
    send(results, HELLO, {"pid": os.getpid(), "python": sys.version.split()[0]})
    reason = refusal()
    if reason is None:
        try:
            from mprun.main import run
        except Exception as error:  # a broken installation, a site-packages that shadows the library
            reason = "cannot load mprun's worker: %s" % error
    if reason is not None:
        send(results, START_FAILED, {"stage": "interpreter", "type": "", "message": reason, "traceback": None})
        return 3
    return run(channel, results, claims)


if __name__ == "__main__":
    sys.exit(main())
