"""Idle until a client outside asks the server in another thread; the argument: what waits for that."""

import concurrent.futures
import queue
import socketserver
import subprocess
import sys
import threading

asked = threading.Event()
items: queue.Queue[str] = queue.Queue(1)
answer: concurrent.futures.Future[str] = concurrent.futures.Future()
gate = threading.Lock()


class Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        line = self.rfile.readline().decode()
        HOW[sys.argv[-1]][1](line)


def work() -> None:
    assert items.get() == "go\n"


def wait_for_worker() -> None:
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()


def wait_for_room() -> None:
    items.put("first")
    items.put("second")


def wait_for_pool() -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert pool.submit(answer.result).result() == "go\n"


def wait_at_gate() -> None:
    gate.acquire()
    gate.acquire()


def wait_for_echo() -> None:
    assert child.stdout is not None
    assert child.stdout.readline() == "go\n"
    child.wait()


def ask_child(line: str) -> None:
    assert child.stdin is not None
    child.stdin.write(line)
    child.stdin.close()


def end(_line: str) -> None:
    threading.Thread(target=server.shutdown).start()


HOW = {
    "event": (asked.wait, lambda _line: asked.set()),
    "worker": (wait_for_worker, items.put),
    "room": (wait_for_room, lambda _line: items.get()),
    "future": (answer.result, answer.set_result),
    "pool": (wait_for_pool, answer.set_result),
    "gate": (wait_at_gate, lambda _line: gate.release()),
    "child": (wait_for_echo, ask_child),
    "server": (lambda: thread.join(), end),
    "exit": (lambda: None, end),
}

if __name__ == "__main__":
    if sys.argv[-1] == "child":
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=sys.argv[-1] != "exit")
    thread.start()
    print("ready", server.server_address[1], flush=True)
    HOW[sys.argv[-1]][0]()
    print("done", flush=True)
