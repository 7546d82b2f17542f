"""Loads the user's script and finds the functions a job names in it."""
from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from types import ModuleType

from mprun.protocol import StartFailure

TYPE_CHECKING = False  # as typing has it, whose import takes a millisecond or two
if TYPE_CHECKING:
    from typing import Any


def load_preload(name: str) -> None:
    """Imports a module that the spec wants in the host before it forks."""
    try:
        importlib.import_module(name)
    except BaseException as error:
        raise StartFailure("preload", f'cannot import "{name}" (preload): {explain(error)}', error) from error


def load_script(path: str) -> ModuleType:
    """Imports the script under its own name, so that what it defines can be pickled by it."""
    name = os.path.splitext(os.path.basename(path))[0]
    if not name.isidentifier() or name in sys.modules or name in sys.stdlib_module_names:
        name = "mprun_script"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # the supervisor only takes .py files
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        raise StartFailure("import", f"cannot import {path}: {explain(error)}", error) from error
    return module


def find_function(module: ModuleType, name: str, field: str) -> Callable[..., Any]:
    """The callable `name` of the script; `field` is the spec field that asked for it."""
    found = getattr(module, name, None)
    if callable(found):
        return found
    where = module.__file__
    if found is not None:
        raise StartFailure(field, f'"{field}": {name} in {where} is no function but a {type(found).__name__}')
    import difflib

    known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    message = f'"{field}": there is no function {name} in {where}'
    near = difflib.get_close_matches(name, known, 1)
    if near:
        message += f', did you mean "{near[0]}"?'
    elif known:
        message += f" (it has {', '.join(known[:8])})"
    raise StartFailure(field, message)


def call_setup(function: Callable[[], Any], field: str) -> None:
    """Runs `setup` or `worker_setup`; whatever it raises, a sys.exit included, ends the start."""
    try:
        function()
    except BaseException as error:
        raise StartFailure(field, f"{field} failed: {explain(error)}", error) from error


def explain(error: BaseException) -> str:
    """One line that says what an exception was."""
    if isinstance(error, SystemExit):
        return f"it called sys.exit({'' if error.code is None else repr(error.code)})"
    if isinstance(error, SyntaxError) and error.filename:
        return f"SyntaxError at {error.filename}:{error.lineno}: {error.msg}"
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be shown)"
    name = type(error).__name__
    return f"{name}: {text}" if text else name
