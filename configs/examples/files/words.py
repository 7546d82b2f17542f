"""Word statistics of one text file. Standard library only, so that any Python can run the job."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any


def count_words(path: str) -> dict[str, Any]:
    """How many words a file has, how many different ones, the longest, the most frequent."""
    words = re.findall(r"[a-z]+(?:'[a-z]+)?", Path(path).read_text(encoding="utf-8").lower())
    counts = Counter(words)
    return {
        "file": Path(path).name,
        "words": len(words),
        "distinct": len(counts),
        "longest": max(words, key=len, default=""),
        "most_frequent": sorted(counts, key=lambda word: (-counts[word], word))[:3],
    }
