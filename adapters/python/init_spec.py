"""mprun init: writes a job spec for a script. Called by mprun as `python -I init_spec.py SCRIPT [FUNCTION]`; the script is read
by the parser, never run.

What it looks for, in this order: a call such as `pool.map(f, inputs)`, whose function and inputs become those of the job; a
function that takes one argument; and what ranks need (torch.distributed, RANK, mprun.rank). It asks only where the script
leaves a choice, and only on a terminal.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

# Methods of Pool, executors and joblib: the call they make for each input.
CALLS = {"map": "item", "imap": "item", "imap_unordered": "item", "map_async": "item", "starmap": "args"}
CALLS |= {"starmap_async": "args"}
LIKELY = ("run", "work", "task", "process", "evaluate", "score", "main")
RANK_NAMES = {"RANK", "LOCAL_RANK", "WORLD_SIZE"}
PLACEHOLDER = {"range": 10}


class Function(NamedTuple):
    name: str
    line: int
    required: int  # arguments without a default
    most: int


class PoolCall(NamedTuple):
    function: str
    call: str
    inputs: Any  # a field "inputs", or None
    line: int


def stop(message: str) -> NoReturn:
    sys.stderr.write(f"mprun: init: {message}\n")
    sys.exit(2)


def functions_of(tree: ast.Module) -> list[Function]:
    """Those that a worker can call by name."""
    found = []
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        arguments = node.args.posonlyargs + node.args.args
        required = len(arguments) - len(node.args.defaults)
        required += sum(default is None for default in node.args.kw_defaults)
        found.append(Function(node.name, node.lineno, required, 99 if node.args.vararg else len(arguments)))
    return found


def literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None


def inputs_of(node: ast.expr, names: dict[str, ast.expr]) -> Any:
    """The field "inputs" that stands for an expression, or None where only running it would show its value."""
    if isinstance(node, ast.Name) and node.id in names:
        node = names[node.id]
    if isinstance(node, ast.Call) and not node.keywords:
        words = [literal(argument) for argument in node.args]
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name == "range" and len(words) == 1 and isinstance(words[0], int) and words[0] > 0:
            return {"range": words[0]}
        if name in ("glob", "iglob") and len(words) == 1 and isinstance(words[0], str):
            return {"glob": words[0]}
        if name in ("sorted", "list", "tuple") and len(node.args) == 1:
            return inputs_of(node.args[0], names)
    value = literal(node)
    if isinstance(value, (list, tuple)) and value:
        try:
            return {"items": json.loads(json.dumps(value))}
        except (TypeError, ValueError):
            return None
    return None


def pool_calls(tree: ast.Module, known: set[str]) -> list[PoolCall]:
    names: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            names[name] = ast.Tuple([], ast.Load()) if name in names else node.value  # assigned twice: not known
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or len(node.args) < 2 or not isinstance(node.func, ast.Attribute):
            continue
        function = node.args[0]
        if node.func.attr in CALLS and isinstance(function, ast.Name) and function.id in known:
            inputs = inputs_of(node.args[1], names)
            found.append(PoolCall(function.id, CALLS[node.func.attr], inputs, node.lineno))
    return found


def needs_ranks(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in RANK_NAMES:
            return True
        if isinstance(node, ast.Attribute) and node.attr in ("init_process_group", "world_size"):
            return True
        if isinstance(node, ast.Attribute) and node.attr == "rank" and getattr(node.value, "id", "") == "mprun":
            return True
    return False


def choose(functions: list[Function], script: str) -> Function:
    """One of several functions: one with a usual name, or the one that the user names on the terminal."""
    for name in LIKELY:
        for function in functions:
            if function.name == name:
                return function
    if len(functions) == 1:
        return functions[0]
    lines = "\n".join(f"  {function.name} (line {function.line})" for function in functions)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        stop(f"{script} has several functions; name one, as in {script}:{functions[0].name}:\n{lines}")
    sys.stderr.write(f"{script} has several functions:\n{lines}\n")
    while True:
        sys.stderr.write(f"which one shall be called for each input? [{functions[0].name}] ")
        answer = sys.stdin.readline()
        if not answer:
            stop("no function was named")
        for function in functions:
            if function.name == (answer.strip() or functions[0].name):
                return function


def spec_of(tree: ast.Module, script: str, wanted: str) -> tuple[dict[str, Any], list[str]]:
    """The spec, and notes about it for the user."""
    functions = functions_of(tree)
    by_name = {function.name: function for function in functions}
    if wanted and wanted not in by_name:
        stop(f"{script} has no function {wanted} at its top level" + ("; it has " + ", ".join(by_name) if by_name else ""))
    calls = [call for call in pool_calls(tree, set(by_name)) if wanted in ("", call.function)]
    if calls:
        call = max(calls, key=lambda call: call.inputs is not None)
        spec = {"script": script, "function": call.function}
        notes = [f"calls {call.function} as the call in line {call.line} does"]
        if call.call != "item":
            spec["call"] = call.call
    elif not wanted and needs_ranks(tree):
        return {"script": script, "processes": 2}, ["runs the script in 2 processes at once, as ranks: see \"processes\""]
    else:
        usable = [by_name[wanted]] if wanted else [f for f in functions if f.required <= 1 <= f.most]
        if not usable:
            if functions:
                stop(f"{script} has no function that takes one argument; name one, as in {script}:{functions[0].name}")
            return {"script": script, "processes": 2}, ["has no function: runs the script in 2 processes at once, as ranks"]
        function = choose(usable, script)
        spec = {"script": script, "function": function.name}
        notes = [f"calls {function.name} once for each input"]
        if function.required > 1:
            spec["call"] = "args"
            notes.append(f"it takes {function.required} arguments: each input is a list of them")
        call = None
    inputs = call.inputs if call else None
    if inputs is None:
        inputs = PLACEHOLDER if spec.get("call") != "args" else {"items": [[0] * by_name[spec["function"]].required]}
        notes.append("the inputs could not be read off the script: \"inputs\" is only a place to put them")
    return {**spec, "inputs": inputs}, notes


def main() -> int:
    script, _, wanted = sys.argv[1].partition(":") if not Path(sys.argv[1]).is_file() else (sys.argv[1], "", "")
    path = Path(script)
    try:
        text = path.read_bytes()
        tree = ast.parse(text, filename=script)
    except OSError as error:
        stop(f"{script}: {error.strerror}")
    except (SyntaxError, ValueError) as error:
        stop(f"{script} is no Python {sys.version_info[0]}.{sys.version_info[1]}: {error}")
    target = path.with_suffix(".json")
    spec, notes = spec_of(tree, path.name, wanted)
    body = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in {"version": 1, **spec}.items())
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write("{\n" + body + "\n}\n")
    except FileExistsError:
        stop(f"{target} is there already; remove it, or edit it")
    except OSError as error:
        stop(f"{target}: {error.strerror}")
    print(f"{target}: " + "\n  ".join(notes))
    print(f"next: mprun check {target}, then mprun {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
