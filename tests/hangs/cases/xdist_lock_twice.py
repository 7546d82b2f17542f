"""A test under pytest-xdist locks a lock twice (pytest-xdist#110); its worker's other thread waits for messages."""

import sys
import threading


def test_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()  # blocks here


if __name__ == "__main__":
    import pytest

    sys.exit(pytest.main([__file__, "-n", "2", "-p", "no:cacheprovider"]))  # hangs here
