"""Makes OpenCV safe around fork: ends its threads before, and restores their number in the parent afterwards. The child
computes in its one thread. Written in Python because the library that opencv-python bundles has no symbols to be found.
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
