"""Shows import_at_fork.py how far the import of import_slow is."""

import threading

entered = threading.Event()
leave = threading.Event()
