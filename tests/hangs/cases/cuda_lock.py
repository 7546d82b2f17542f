"""A program that uses CUDA locks twice: the threads of the driver only wake those that wait for the GPU."""

import ctypes
import sys
import threading

driver = ctypes.CDLL(sys.argv[1])  # cuda_driver.c
driver.use_gpu(ctypes.c_double(0))
lock = threading.Lock()
lock.acquire()
lock.acquire()  # hangs here
