"""A context of ZeroMQ cannot end before its messages are sent, and nothing listens at their address (pyzmq#102)."""

import zmq

context = zmq.Context()
sender = context.socket(zmq.PUSH)
sender.connect("tcp://127.0.0.1:9")
sender.send(b"never sent")
sender.close()
context.term()  # hangs here
print("done")
