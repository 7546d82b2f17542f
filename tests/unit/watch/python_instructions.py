"""The instructions of some functions, as they are in memory and as the interpreter's own disassembler names them.

Writes one line of JSON to standard output, {"functions": [{"bytes": HEX, "instructions": [[UNIT, NAME, TARGET], ...]}]},
where a unit has two bytes, and TARGET is the unit to which a jump leads, else null. It ends when standard input does.
"""

from __future__ import annotations

import dis
import json
import os
from collections.abc import Callable
from types import CodeType

total = 0


class Counter:
    step = 1

    def __init__(self) -> None:
        self.count = 0

    def add(self, number: int) -> bool:
        self.count += number * self.step
        return self.count > 3


def counts(numbers: list[int]) -> int:
    global total
    counter, text = Counter(), ""
    for number in numbers:
        if counter.add(number) and not number == 5:
            text += f"{number:03}"
        elif number is None or number in {1, 2}:
            continue
    while len(text) > 6:
        text = text[1:]
    total = total + 1
    return counter.count + len(text)


def catches(numbers: list[int]) -> dict[str, int]:
    found: dict[str, int] = {}
    try:
        with open(os.devnull) as nothing:
            found["x"] = int(nothing.read() or "3")
        first, *rest = numbers
        found["y"] = (lambda: first + sum(rest))()
        del rest
        return found | {str(one): one for one in numbers if all(other >= 0 for other in numbers)}
    except (ValueError, OSError) as error:
        raise KeyError(*error.args) from error


def has_long_jumps(numbers: list[int]) -> int:
    """With arguments that need more than one byte."""
    value = 0
    for number in numbers:
        if number:
            value = number + value * 2 - number + value * 3 - number + value * 5 - number + value * 7 - number
            value = number + value * 2 - number + value * 3 - number + value * 5 - number + value * 7 - number
            value = number + value * 2 - number + value * 3 - number + value * 5 - number + value * 7 - number
            value = number + value * 2 - number + value * 3 - number + value * 5 - number + value * 7 - number
            value = number + value * 2 - number + value * 3 - number + value * 5 - number + value * 7 - number
            value = number + value * 2 - number + value * 3 - number + value * 5 - number + value * 7 - number
            value = number + value * 2 - number + value * 3 - number + value * 5 - number + value * 7 - number
            value %= 1000
    return value


def described(code: CodeType) -> dict[str, object]:
    instructions: list[tuple[int, str, int | None]] = []
    for one in dis.get_instructions(code):
        is_jump = one.opcode in dis.hasjrel
        instructions.append((one.offset // 2, one.opname, one.argval // 2 if is_jump else None))
    return {"bytes": code._co_code_adaptive.hex(), "instructions": instructions}


if __name__ == "__main__":
    functions: list[Callable[[list[int]], object]] = [counts, catches, has_long_jumps]
    for _ in range(100):  # until the instructions are specialised
        for function in functions:
            function([1, 2, 3, 4, 5, 0])
    codes = [function.__code__ for function in [*functions, Counter.__init__, Counter.add]]
    codes += [one for code in codes for one in code.co_consts if isinstance(one, CodeType)]
    print(json.dumps({"functions": [described(code) for code in codes]}), flush=True)
    os.read(0, 1)
