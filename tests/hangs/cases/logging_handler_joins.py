"""A handler of logging, which holds its lock, waits for a thread that logs."""

import logging
import threading


class Uploads(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        upload = threading.Thread(target=logging.getLogger("upload").warning, args=("sent",))
        upload.start()
        upload.join()  # hangs here


logging.getLogger().addHandler(Uploads())
logging.error("disk is full")
print("done")
