"""select, poll and epoll on a pipe that no process writes to, each with a timeout."""

import os
import select
import sys

if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    source, sink = os.pipe()
    assert select.select([source], [], [], seconds / 3) == ([], [], [])
    poll = select.poll()
    poll.register(source)
    assert poll.poll(1000 * seconds / 3) == []
    with select.epoll() as epoll:
        epoll.register(source)
        assert epoll.poll(seconds / 3) == []
    print("done", flush=True)
