"""multiprocessing's own logger, sent through a queue of multiprocessing: its put() logs (cpython#91555)."""

import logging.handlers
import multiprocessing

queue = multiprocessing.Queue()
logger = multiprocessing.get_logger()
logger.addHandler(logging.handlers.QueueHandler(queue))
logger.setLevel("DEBUG")
logger.debug("start")  # hangs here
