"""Values and errors of tasks as JSON, inputs as the function wants them, and seeds."""
from __future__ import annotations

import importlib.machinery
import json
import math
import os
import sys
from collections.abc import Callable

from mprun.tensors import HoldsTensor, TensorError, is_tensor
from mprun.user_code import user_traceback

TYPE_CHECKING = False  # as typing has it, whose import takes a millisecond or two
if TYPE_CHECKING:
    from typing import Any

#: The folder of Python's own modules.
STANDARD_LIBRARY = os.path.dirname(os.__file__)
#: Longest message and traceback kept of a failed task, in characters.
LONGEST_TEXT = 64 * 1024

MAY_RETURN = (
    "a task may return None, booleans, numbers, strings, and lists, tuples and dicts (with string keys) of these; and "
    "tensors, alone or in one dict, list or tuple"
)


class TaskValueError(TypeError):
    """A task's value cannot be written as JSON."""


def encode(value: Any) -> bytes:
    """The value as UTF-8 JSON; raises TaskValueError with the cure if that fails, HoldsTensor for a tensor."""
    try:
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=plain)
        except ValueError as error:  # a non-finite float, or a cycle
            if "Circular" in str(error):
                raise TaskValueError("the value contains itself; " + MAY_RETURN) from None
            text = json.dumps(finite(value), ensure_ascii=False, separators=(",", ":"), default=plain)
        try:
            return text.encode()
        except UnicodeEncodeError:  # lone surrogates, as in undecodable file names
            return json.dumps(json.loads(text), separators=(",", ":")).encode()
    except TaskValueError:
        raise
    except (TypeError, RecursionError) as error:
        raise TaskValueError(f"the value is no JSON: {error}; {MAY_RETURN}") from None


def plain(value: Any) -> Any:
    """json's hook for types it does not know: numpy scalars count as numbers."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        item = value.item()
        if isinstance(item, (bool, int, float, str)):
            return finite(item)
    if is_tensor(value):
        raise HoldsTensor
    kind = type(value).__name__
    raise TaskValueError(f"the value holds a {kind}, which is no JSON; {MAY_RETURN}")


def finite(value: Any) -> Any:
    """The value with every non-finite float replaced by its name."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


def describe(error: BaseException) -> bytes:
    """An exception as the JSON object of a result line: type, message, traceback."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    try:
        message = str(error)
    except BaseException as second:  # SystemExit, too: the worker goes on
        message = f"(the exception's message raised {type(second).__name__})"
    if isinstance(error, (TaskValueError, TensorError)):
        return json.dumps({"type": "TypeError", "message": message[:LONGEST_TEXT], "traceback": None}).encode()
    if isinstance(error, SystemExit):
        message = f"the task called sys.exit({'' if error.code is None else repr(error.code)})"
    try:
        trace = user_traceback(error)[-LONGEST_TEXT:]
    except Exception:
        trace = None
    return json.dumps({"type": name, "message": message[:LONGEST_TEXT], "traceback": trace}).encode()


def mix(seed: int, number: int) -> int:
    """A separate 64-bit seed for each number (the finaliser of splitmix64)."""
    word = (seed + (number + 1) * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return word ^ (word >> 31)


#: Modules with a random generator of their own.
SEEDED = ("random", "numpy", "torch")


class SeedOnImport:
    """A module finder that seeds random, numpy and torch when they are imported after the seed was planted."""

    def __init__(self) -> None:
        self.seed = 0

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in SEEDED or path is not None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_seed(module: Any) -> None:
            execute(module)
            seed_module(module, self.seed)  # this one only: the others may be half imported

        spec.loader.exec_module = execute_and_seed  # type: ignore[method-assign]
        return spec


on_import: SeedOnImport | None = None


def plant_seed(seed: int) -> None:
    """Seeds random, numpy's global generator and torch's: loaded ones now, the others when they are imported."""
    global on_import
    if on_import is None:
        on_import = SeedOnImport()
        sys.meta_path.insert(0, on_import)
    on_import.seed = seed
    for name in SEEDED:
        module = sys.modules.get(name)
        if module is not None:
            seed_module(module, seed)


def seed_module(module: Any, seed: int) -> None:
    """Seeds the generator of one of SEEDED. A script may have a module of its own that is called random."""
    if module.__name__ == "random":
        if os.path.dirname(getattr(module, "__file__", None) or "") == STANDARD_LIBRARY:
            module.seed(seed)
    elif module.__name__ == "numpy" and hasattr(module, "random"):
        module.random.seed(seed & 0xFFFFFFFF)
    elif module.__name__ == "torch" and hasattr(module, "manual_seed"):
        module.manual_seed(seed)


def seeder(seed: int | None) -> Callable[[int], None] | None:
    """What to call before each task so that its random numbers depend on seed and task alone."""
    if seed is None:
        return None
    return lambda task: plant_seed(mix(seed, task))
