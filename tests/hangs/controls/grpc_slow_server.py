"""A forked child waits by gRPC, without a limit of time, for a server that takes its time."""
import multiprocessing, subprocess, sys
import grpc

SERVER = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
import grpc

def answer(request, _):
    time.sleep(float(request))
    return request

handler = grpc.unary_unary_rpc_method_handler(answer)
server = grpc.server(ThreadPoolExecutor(2))
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Echo", {"Say": handler})])
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
sys.stdin.read()
server.stop(None)
"""

def ask(port, seconds):
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        print(channel.unary_unary("/test.Echo/Say")(seconds.encode()), flush=True)

if __name__ == "__main__":
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child = multiprocessing.get_context("fork").Process(target=ask, args=[int(server.stdout.readline()), sys.argv[1]])
    child.start()
    child.join()
    server.communicate()
    print("done", flush=True)
