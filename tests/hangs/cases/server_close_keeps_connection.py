"""server_close() waits for the threads of a server (cpython#75414), one of which reads from a connection that the same
program keeps open.
"""

import http.client
import http.server
import socketserver
import threading


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = False


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        pass


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever).start()
connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
connection.request("GET", "/")
connection.getresponse().read()
server.shutdown()
server.server_close()  # hangs here
print("done")
