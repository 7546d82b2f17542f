"""MindSpore around fork, by the hooks that mindspore.multiprocessing puts around Process.start: they wait for its
pipelines and stop its analysis threads before, restart them in the parent, and rebuild its executors in the child.
With us they run around every fork. The child's device_target becomes CPU.

The interface is that of mindspore.multiprocessing 2.x: `mindspore._c_expression.fork_utils` has
`prepare_before_fork`, `parent_at_fork` and `child_at_fork`. MindSpore itself was not at hand; the tests use a package
of the same interface.
"""
import sys

_ours = False  # the fork in flight is ours to prepare, not mindspore.multiprocessing's own


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
