"""Two threads take two locks in opposite order, while a third one serves the program's metrics."""

import http.server
import threading

first, second = threading.Lock(), threading.Lock()
both_have_one = threading.Barrier(2)


class Metrics(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"up 1\n")


def transfer(source: threading.Lock, target: threading.Lock) -> None:
    with source:
        both_have_one.wait()
        with target:  # hangs here
            pass


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metrics)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    other = threading.Thread(target=transfer, args=(first, second))
    other.start()
    transfer(second, first)
    other.join()
    print("done")
