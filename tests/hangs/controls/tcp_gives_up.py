"""Both ends of a connection are in one process, which fills it and reads nothing: it ends by TCP_USER_TIMEOUT."""

import errno
import select
import socket
import sys

seconds = float(sys.argv[1])
with socket.create_server(("127.0.0.1", 0)) as server:
    sends = socket.create_connection(server.getsockname())
    reads_nothing, _ = server.accept()
sends.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * seconds))
try:
    if sys.argv[2] == "poll":
        sends.setblocking(False)
        poll = select.poll()
        poll.register(sends, select.POLLOUT)
        while True:
            try:
                sends.send(bytes(65536))
            except BlockingIOError:
                poll.poll()
    sends.sendall(bytes(1 << 26))
except OSError as end:
    assert end.errno == errno.ETIMEDOUT, end
print("done", flush=True)
