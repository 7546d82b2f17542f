"""A handler of a single-threaded HTTP server asks its own server, which is busy with that request (a development server
without threads, such as Flask's and Django's were)."""

import http.server
import multiprocessing
import urllib.request


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/page":
            with urllib.request.urlopen(url(self.server.server_port, "/part")) as part:  # hangs here
                part.read()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")


def url(port: int, path: str) -> str:
    return f"http://127.0.0.1:{port}{path}"


def ask(port: int) -> None:
    with urllib.request.urlopen(url(port, "/page")) as page:
        page.read()


def main() -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    client = multiprocessing.get_context("fork").Process(target=ask, args=(server.server_port,))
    client.start()
    server.handle_request()
    client.join()
    print("done", flush=True)


if __name__ == "__main__":
    main()
