"""OpenCV around fork: its own threads are ended in the parent before, and are there again afterwards; the child
computes in its one thread. (opencv-python bundles its library with no symbols to be found, hence in Python.)
"""
import sys

_threads = None


def prepare():
    global _threads
    cv2 = sys.modules["cv2"]
    _threads = cv2.getNumThreads()
    cv2.setNumThreads(0)


def parent():
    sys.modules["cv2"].setNumThreads(_threads)
