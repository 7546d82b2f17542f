"""Children forked from a process that serves and has used gRPC ask it (grpc#13873): the threads that listen are lost.

On Debian 13 gRPC waits for its own threads before the fork, in vain, and that is where it hangs.
"""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import grpc

METHOD = "/test.Echo/Say"


def serve() -> int:
    handler = grpc.unary_unary_rpc_method_handler(lambda request, _: request)
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Echo", {"Say": handler})])
    serve.kept = server
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return port


def ask(port: int) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        print(channel.unary_unary(METHOD)(b"hello"), flush=True)


def main() -> None:
    port = serve()
    ask(port)
    multiprocessing.get_context("fork").Pool(4).map(ask, [port] * 4, chunksize=1)  # hangs here
    print("done", flush=True)


if __name__ == "__main__":
    main()
