"""The Python side of the fork hooks: runtimes that can only be made safe in Python. Loaded by mprun's sitecustomize at
the first fork of a process that has one of them, in any Python from 3.7.

An adapter is a module of this package, named after the module it is for, with any of `prepare()`, `parent()` and
`child()`, in the order of os.register_at_fork. A failure in one is reported to mprun and never reaches the program.
"""
import importlib
import os
import sys

#: Adapter name -> the modules, any of which needs it. Order of registration: the last prepares first.
ADAPTERS = {"seeds": ("numpy", "torch"), "torch": ("torch",), "mindspore": ("mindspore",), "opencv": ("cv2",)}
#: Off unless MPRUN_ADAPTERS says +NAME.
OPT_IN = ("seeds",)

_loaded = {}  # adapter name -> module, of those that prepared at least once
_prepared = []  # adapters that prepared for the current fork, in order of registration


def is_on(name):
    """Whether MPRUN_ADAPTERS leaves the adapter on, or switches one of OPT_IN on; as the preload library reads it."""
    on = name not in OPT_IN
    for word in os.environ.get("MPRUN_ADAPTERS", "").replace(",", " ").split():
        if word.lstrip("+-") in (name, "all"):
            on = not word.startswith("-")
    return on


def run(half):
    """Runs "prepare", "parent" or "child" of every adapter whose runtime is loaded."""
    if half == "prepare":
        del _prepared[:]
        for name in reversed(list(ADAPTERS)):
            wanted = is_on(name) and any(module in sys.modules for module in ADAPTERS[name])
            if wanted and _call(name, half):
                _prepared.insert(0, name)
        return
    for name in list(_prepared):
        _call(name, half)


def _call(name, half):
    """Calls one adapter; False if it failed, which is reported to mprun."""
    try:
        if name not in _loaded:
            _loaded[name] = importlib.import_module("mprun_fork." + name + "_adapter")
        function = getattr(_loaded[name], half, None)
        if function is not None:
            function()
        return True
    except Exception as error:
        note(name, 'the fork hook "%s" failed in its %s half: %s: %s' % (name, half, type(error).__name__, error))
        return False


def note(adapter, text):
    """Sends mprun a message for the user; core/wire/notes.h listens."""
    address = os.environ.get("MPRUN_NOTES")
    if not address:
        return
    import socket

    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto((adapter + "\n" + text).encode("utf-8", "replace")[:1024], "\0" + address)
    except OSError:
        pass
