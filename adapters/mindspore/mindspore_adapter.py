"""Makes MindSpore safe around fork with the hooks that mindspore.multiprocessing runs around Process.start. Before the
fork they wait for its pipelines and stop its analysis threads; afterwards they restart the threads in the parent, and
rebuild the executors in the child. This adapter runs them around every fork, and makes CPU the child's device_target.

The interface is that of mindspore.multiprocessing 2.x: `mindspore._c_expression.fork_utils` has
`prepare_before_fork`, `parent_at_fork` and `child_at_fork`. The adapter was not tried with MindSpore itself: the tests
use a package with the same interface.
"""
import sys

_ours = False  # this adapter prepares the current fork, not mindspore.multiprocessing


def _forked_by_mindspore():
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == "mindspore.multiprocessing":
            return True
        frame = frame.f_back
    return False


def _fork_utils():
    return sys.modules["mindspore._c_expression"].fork_utils


def prepare():
    global _ours
    _ours = "mindspore._c_expression" in sys.modules and not _forked_by_mindspore()
    if _ours:
        _fork_utils().prepare_before_fork()


def parent():
    if _ours:
        _fork_utils().parent_at_fork()


def child():
    if not _ours:
        return
    _fork_utils().child_at_fork()
    mindspore = sys.modules["mindspore"]
    if mindspore.get_context("device_target") != "CPU":
        mindspore.set_context(device_target="CPU")
