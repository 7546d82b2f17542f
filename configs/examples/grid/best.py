"""Prints the points of a grid run, the best first.

    python3 best.py RUN_DIR
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    """Sorts the results by held-out accuracy."""
    if len(sys.argv) != 2:
        sys.exit("usage: best.py RUN_DIR")
    with open(Path(sys.argv[1]) / "results.jsonl", encoding="utf-8") as lines:
        results = [json.loads(line) for line in lines]
    points = [result["value"] for result in results if result["status"] == "ok"]
    print("accuracy  learning_rate  width  weight_decay")
    for point in sorted(points, key=lambda point: -point["accuracy"]):
        print(
            f"{point['accuracy']:<8}  {point['learning_rate']:<13}  "
            f"{point['width']:<5}  {point['weight_decay']}"
        )


if __name__ == "__main__":
    main()
