"""Counts points of a square that are inside its circle, in a helper process for each task. One task hangs.

    mprun job.json

GET_FIRST=1 is the cure: the result is taken before the helper is joined.
"""

from __future__ import annotations

import multiprocessing
import os
import random
from typing import Any

POINTS = 600_000
LARGE = 17  # this task's helper sends its points, too: more than a pipe holds


def helper(seed: int, results: multiprocessing.Queue[Any]) -> None:
    """Sends the number of points inside, and some of the points."""
    source = random.Random(seed)
    points = ((source.random(), source.random()) for _ in range(POINTS))
    inside = [point for point in points if point[0] ** 2 + point[1] ** 2 <= 1]
    results.put((len(inside), inside[: 10_000 if seed == LARGE else 1]))


def count(seed: int) -> float:
    """An estimate of pi."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=helper, args=(seed, results))
    process.start()
    if os.environ.get("GET_FIRST"):
        inside, _ = results.get()
        process.join()
    else:
        process.join()  # waits for ever if the helper waits for a reader of its result
        inside, _ = results.get()
    return 4 * inside / POINTS
