"""Runs at the start of every Python below mprun: registers the Python side of the fork hooks, then hands over to the
sitecustomize that would have run without mprun. Costs a program that never forks a few microseconds, and must work, or
do nothing, under any Python: it never breaks one.
"""
import sys


def _hand_over(here):
    """Imports the user's own sitecustomize, as if this folder were not on the path. What it raises is the user's."""
    sys.path[:] = [entry for entry in sys.path if entry != here]
    sys.path_importer_cache.pop(here, None)
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", None) != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = ours


def _adapt(here):
    """Registers hooks that load their code at the first fork that finds something to do."""
    import os

    if sys.version_info < (3, 7) or not hasattr(os, "register_at_fork"):
        return  # the preload library does what can be done without this

    # The runtimes that need anything done in Python; the rest is the preload library's.
    runtimes = ("torch", "mindspore", "cv2")
    if "+" in os.environ.get("MPRUN_ADAPTERS", ""):
        runtimes += ("numpy",)  # for +seeds

    def run(half):
        if any(name in sys.modules for name in runtimes):
            _load(here).run(half)

    os.register_at_fork(
        before=lambda: run("prepare"),
        after_in_parent=lambda: run("parent"),
        after_in_child=lambda: run("child"),
    )


def _offer_mprun(here):
    """Makes `import mprun` work, and shadows nothing: asked only when no other finder has such a module."""
    if sys.version_info < (3, 11):
        return  # its extension cannot be loaded there, and the oldest use other kinds of finders

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name != "mprun" or path is not None:
                return None
            import os
            from importlib.machinery import PathFinder

            return PathFinder.find_spec(name, [os.path.dirname(here)])

    sys.meta_path.append(Finder)


def _load(here):
    """The package of Python adapters, loaded by its file: nothing is added to sys.path."""
    import importlib.util
    import os

    loaded = sys.modules.get("mprun_fork")
    if loaded is None:
        folder = os.path.join(os.path.dirname(here), "mprun_fork")
        spec = importlib.util.spec_from_file_location(
            "mprun_fork", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        loaded = importlib.util.module_from_spec(spec)
        sys.modules["mprun_fork"] = loaded
        spec.loader.exec_module(loaded)
    return loaded


def _start():
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    _adapt(here)
    _offer_mprun(here)
    _hand_over(here)


_start()
