"""Waits for a GPU: in the driver, in a thread of its own, or for a function that the driver calls at the end."""

import ctypes
import sys
import threading

driver = ctypes.CDLL(sys.argv[1])  # cuda_driver.c
driver.use_gpu(ctypes.c_double(float(sys.argv[2])))
how = sys.argv[3]
if how == "thread":
    thread = threading.Thread(target=driver.wait_for_gpu)
    thread.start()
    thread.join()
elif how == "callback":
    finished = threading.Event()
    function = ctypes.CFUNCTYPE(None)(finished.set)
    driver.call_when_finished(function)
    waiter = threading.Thread(target=finished.wait)
    waiter.start()
    waiter.join()
else:
    driver.wait_for_gpu()
print("done")
