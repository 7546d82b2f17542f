"""A handler of an HTTP server asks its own server, which answers by another thread, slowly."""

import http.server
import sys
import threading
import time
import urllib.request

SECONDS = float(sys.argv[1])


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/page":
            with urllib.request.urlopen(url(self.server.server_port, "/part")) as part:
                part.read()
        else:
            time.sleep(SECONDS)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:
        pass


def url(port: int, path: str) -> str:
    return f"http://127.0.0.1:{port}{path}"


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with urllib.request.urlopen(url(server.server_port, "/page")) as page:
        assert page.read() == b"hello"
    print("done")
